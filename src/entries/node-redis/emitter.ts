/** Node's emitter, with listeners of any arguments. */
import { EventEmitter } from "node:events";

type Listener = (...args: never[]) => void;

export class Emitter extends EventEmitter {
  override on(event: string | symbol, listener: Listener): this {
    return super.on(event, listener as () => void);
  }

  override once(event: string | symbol, listener: Listener): this {
    return super.once(event, listener as () => void);
  }

  override off(event: string | symbol, listener: Listener): this {
    return super.off(event, listener as () => void);
  }
}
