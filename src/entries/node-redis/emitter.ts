/** Node's emitter, with listeners of any arguments. */
import { EventEmitter } from "node:events";

interface Emitting extends Pick<EventEmitter, "emit" | "listenerCount"> {
  on(event: string | symbol, listener: (...args: never[]) => void): unknown;
  once(event: string | symbol, listener: (...args: never[]) => void): unknown;
  off(event: string | symbol, listener: (...args: never[]) => void): unknown;
}

export const Emitter: new () => Emitting = EventEmitter as never;
