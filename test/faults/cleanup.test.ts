/** The order in which the client undoes calls that were given up. */
import { expect, test } from "vitest";
import { CleanUp, type Undoer } from "../../src/redis/cleanup.js";

/** A server that answers only when the test tells it to. */
class Server {
  readonly commands: (readonly string[])[] = [];
  readonly #answers: (() => void)[] = [];

  undoer(together: boolean): Undoer {
    const undo = (ids: readonly string[]) => {
      this.commands.push(ids);
      return new Promise<void>((resolve) => this.#answers.push(resolve));
    };
    return { key: "key", name: "name", together, undo };
  }

  /** Answers all open commands, and resolves when the commands that follow from the answers are sent. */
  async answer(): Promise<void> {
    for (const resolve of this.#answers.splice(0)) resolve();
    await new Promise(setImmediate);
  }
}

const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => String(from + i));

test("four go at once; of those that gather meanwhile who came last goes first, as many as one command may undo", async () => {
  const server = new Server();
  const cleanUp = new CleanUp(() => "server");
  for (const id of ids(0, 1_004)) void cleanUp.add(id, server.undoer(true));
  expect(server.commands.splice(0)).toEqual([["0"], ["1"], ["2"], ["3"]]);
  await server.answer();
  expect(server.commands.splice(0)).toEqual([ids(504, 1_004)]);
  await server.answer();
  expect(server.commands.splice(0)).toEqual([ids(4, 504)]);
  await server.answer();
  expect(cleanUp.size).toBe(0);
});

test("newer ones do not go before those that wait already", async () => {
  const server = new Server();
  const cleanUp = new CleanUp(() => "server");
  const undoer = server.undoer(false);
  for (const id of ids(0, 10)) void cleanUp.add(id, undoer);
  await server.answer();
  for (const id of ids(10, 14)) void cleanUp.add(id, undoer);
  while (cleanUp.size > 0) await server.answer();
  expect(server.commands.flat().slice(0, 10).sort()).toEqual(ids(0, 10));
  expect(server.commands).toHaveLength(14);
});
