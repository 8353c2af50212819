// The shared thing that the lock protects: a JSON file that every clerk reads, changes and writes back. Between the read
// and the write lies a pause, as a database or a web service would take. Whoever writes in that pause is overwritten.
import { readFileSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds between the read and the write of one booking. */
const PAUSE = 25;

export class AccountBook {
  #path;

  constructor(path) {
    this.#path = path;
  }

  async clear() {
    await this.#write({ payments: 0, balances: {} });
  }

  /** Books one payment. Safe only while nobody else does: it knows nothing of locks. */
  async add({ account, amount }, pause = PAUSE) {
    const page = await this.#read();
    await sleep(pause);
    page.payments += 1;
    page.balances[account] = (page.balances[account] ?? 0) + amount;
    await this.#write(page);
  }

  /** What of these payments, all of which were booked into a clear book, is not in it. */
  async compare(payments) {
    const page = await this.#read();
    const wanted = sum(payments.map(({ amount }) => amount));
    const missing = wanted - sum(Object.values(page.balances));
    return { lost: payments.length - page.payments, missing, wanted };
  }

  async #read() {
    return JSON.parse(await readFile(this.#path, "utf8"));
  }

  /** Renaming swaps the file in one step: a process that is killed while it writes leaves no half a book. */
  async #write(page) {
    const draft = `${this.#path}.${process.pid}`;
    await writeFile(draft, JSON.stringify(page));
    await rename(draft, this.#path);
  }
}

/** The payments of payments.csv: `account,amount` under one line of headings. */
export function readPayments() {
  const text = readFileSync(new URL("payments.csv", import.meta.url), "utf8");
  const [, ...lines] = text.trim().split("\n");
  return lines.map((line) => {
    const [account, amount] = line.split(",");
    return { account, amount: Number(amount) };
  });
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
