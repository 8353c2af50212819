// The SQL database, SQLite as WebAssembly. It stands for a server that all processes talk to.
import initSqlJs from "sql.js";

const TABLE = "CREATE TABLE document (id TEXT PRIMARY KEY, text TEXT, fence INTEGER, version INTEGER)";

export class Database {
  #db;

  static async open() {
    const SQL = await initSqlJs();
    const database = new Database();
    database.#db = new SQL.Database();
    database.#db.run(TABLE);
    for (const id of ["alone", "fenced", "versioned"]) {
      database.#db.run("INSERT INTO document VALUES (?, '', 0, 0)", [id]);
    }
    return database;
  }

  /** The rows that a statement changed. */
  run(sql, parameters) {
    this.#db.run(sql, parameters);
    return this.#db.getRowsModified();
  }

  row(id) {
    const statement = this.#db.prepare("SELECT text, fence, version FROM document WHERE id = ?", [id]);
    statement.step();
    const row = statement.getAsObject();
    statement.free();
    return row;
  }
}
