/** Node's EventEmitter, typed by structure: the types of this entry need none of Node. */
import { EventEmitter } from "node:events";

type EventName = string | symbol;
type Listener = (...args: never[]) => void;

/** Node's `EventEmitter`, as redlock's users know it: code that takes an `EventEmitter` takes this, too. */
export interface RedlockEvents {
  /** Calls the listener at each event of that name. */
  on(event: "error", listener: (error: Error) => void): this;
  /** Calls the listener at each event of that name. */
  on(event: EventName, listener: Listener): this;
  /** Calls the listener at the next event of that name. */
  once(event: "error", listener: (error: Error) => void): this;
  /** Calls the listener at the next event of that name. */
  once(event: EventName, listener: Listener): this;
  /** No longer calls the listener. */
  off(event: EventName, listener: Listener): this;
  /** As `on`. */
  addListener(event: EventName, listener: Listener): this;
  /** As `on`, before the listeners that are there. */
  prependListener(event: EventName, listener: Listener): this;
  /** As `once`, before the listeners that are there. */
  prependOnceListener(event: EventName, listener: Listener): this;
  /** As `off`. */
  removeListener(event: EventName, listener: Listener): this;
  /** Removes all listeners of that name, or all listeners. */
  removeAllListeners(event?: EventName): this;
  /** Sets how many listeners an event may have before Node warns of a leak. */
  setMaxListeners(count: number): this;
  /** The number that `setMaxListeners` has set, or Node's default. */
  getMaxListeners(): number;
  /** The listeners of the event. */
  listeners(event: EventName): Listener[];
  /** As `listeners`, with the wrappers that `once` has made. */
  rawListeners(event: EventName): Listener[];
  /** The number of listeners of the event. */
  listenerCount(event: EventName): number;
  /** The names of the events that have listeners. */
  eventNames(): EventName[];
  /** Calls the listeners; false if there is none. */
  emit(event: EventName, ...args: unknown[]): boolean;
}

export const Emitter: new () => RedlockEvents = EventEmitter as new () => RedlockEvents;
