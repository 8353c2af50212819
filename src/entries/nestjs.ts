/**
 * Locks in Nest: a module that provides the client and closes it, a decorator for methods, a filter for errors. Each
 * application has a client of its own, found by injection alone, so that applications in one process do not share one.
 */
import {
  type ArgumentsHost,
  Catch,
  type DynamicModule,
  type ExceptionFilter,
  type FactoryProvider,
  Inject,
  Logger,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from "@nestjs/common";
import type { RedisOptions } from "ioredis";
import { isLockError } from "../base/errors.js";
import { LockClient, type LockClientOptions, type RedisConnection } from "../index.js";
import { type LockedOptions, locked, type NamedBy, type NameSource } from "./decorator.js";
import { type LockProblem, problemOf } from "./http.js";

/** What the application's LockClient is made of. */
export interface LockModuleOptions extends LockClientOptions {
  /**
   * A connection, which stays yours and open; or a URL, or the options of ioredis, for one that is closed with the
   * application.
   */
  redis: RedisConnection | string | RedisOptions;
}

interface Visibility {
  /** Whether all modules see the client without importing the module. Default false. */
  isGlobal?: boolean | undefined;
}

/** As Nest's own modules take them: `useFactory` gets what `inject` names. */
export interface LockModuleAsyncOptions extends Visibility, Pick<ModuleMetadata, "imports"> {
  /** Resolves with the options, or returns them. */
  useFactory: FactoryProvider<LockModuleOptions>["useFactory"];
  /** What `useFactory` is called with. */
  inject?: FactoryProvider["inject"];
}

/**
 * Provides the LockClient of an application, and closes it with the application, after the last request.
 * @example
 * \@Module({ imports: [LockModule.forRoot({ redis: "redis://localhost:6379", isGlobal: true })] })
 * class AppModule {}
 */
export class LockModule implements OnApplicationShutdown {
  readonly #client: LockClient;

  /** Made by Nest. */
  constructor(client: LockClient) {
    this.#client = client;
  }

  /** One client for the app, with these options. */
  static forRoot({ isGlobal = false, ...options }: LockModuleOptions & Visibility): DynamicModule {
    return moduleOf(isGlobal, { useFactory: () => makeClient(options) });
  }

  /** As {@link forRoot}, with options that are known later. */
  static forRootAsync(options: LockModuleAsyncOptions): DynamicModule {
    const { isGlobal = false, imports = [], inject = [], useFactory } = options;
    const made = async (...needed: unknown[]) => makeClient(await useFactory(...needed));
    return { ...moduleOf(isGlobal, { useFactory: made, inject }), imports };
  }

  /** Closes the client; Nest calls it. Never rejects. */
  async onApplicationShutdown(): Promise<void> {
    await this.#client.close();
  }
}

Module({})(LockModule);
InjectLockClient()(LockModule, undefined, 0);

/** Under this token each module has a number of its own. */
const MODULE_NUMBER = Symbol("holdfast.module");
let modules = 0;

function moduleOf(isGlobal: boolean, provider: Omit<FactoryProvider<LockClient>, "provide">): DynamicModule {
  // Nest 10 takes dynamic modules that read the same for one module, and of functions it reads the source text only.
  const number = { provide: MODULE_NUMBER, useValue: ++modules };
  return {
    module: LockModule,
    global: isGlobal,
    providers: [{ provide: LockClient, ...provider }, number],
    exports: [LockClient],
  };
}

function makeClient({ redis, ...options }: LockModuleOptions): LockClient {
  if (typeof redis === "object" && redis !== null && "duplicate" in redis)
    return new LockClient(redis as RedisConnection, options);
  return LockClient.connect(redis, options);
}

/**
 * The application's LockClient, for a parameter of a constructor or a property. `LockClient` is the token, so its type
 * alone does as well.
 * @example
 * class Shop {
 *   constructor(\@InjectLockClient() private readonly locks: LockClient) {}
 * }
 */
export function InjectLockClient(): PropertyDecorator & ParameterDecorator {
  return Inject(LockClient);
}

/** The property where an object with decorated methods has its client. */
const CLIENT = Symbol("holdfast.client");
const injected = new WeakSet<object>();

/** Decorates a method of a provider or controller. `A`: the arguments that the name is made of. */
export type LockedMethodDecorator<A extends unknown[] = unknown[]> = <
  T extends (...args: never[]) => Promise<unknown>,
>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<T> & NamedBy<A, T>,
) => TypedPropertyDescriptor<T>;

/**
 * Each call of the method of a provider or controller takes the lock, runs, and gives it back, by the application's
 * client. See `locked` of `holdfast/decorator`. It needs a LockModule that is imported, or global. The name is what you
 * give, or what the function makes of the arguments; it contains nothing of class or method.
 * @example
 * class Shop {
 *   \@Locked((id: string) => `stock:${id}`, { wait: 2_000 })
 *   async sell(id: string): Promise<void> {
 *     await sell(id);
 *   }
 * }
 */
export function Locked<A extends unknown[]>(
  name: NameSource<A>,
  options?: LockedOptions,
): LockedMethodDecorator<A> {
  const decorate: LockedMethodDecorator<A> = locked(clientOf, name, options);
  return (target, key, descriptor) => {
    if (!injected.has(target)) Inject(LockClient)(target, CLIENT);
    injected.add(target);
    const decorated = decorate(target, key, descriptor);
    copyMetadata(descriptor.value, decorated.value);
    return decorated;
  };
}

function clientOf(self: {
  readonly [CLIENT]?: LockClient;
  readonly constructor: { readonly name: string };
}): LockClient {
  const client = self[CLIENT];
  if (client) return client;
  throw new TypeError(`@Locked: Nest has not made this ${self.constructor.name}, so it has no LockClient`);
}

/** Copies what other decorators have told Nest of the method: routes, guards, pipes. */
function copyMetadata(from: unknown, to: unknown): void {
  const { getMetadataKeys, getMetadata, defineMetadata } = Reflect as unknown as MetadataReflect;
  for (const key of getMetadataKeys(from)) defineMetadata(key, getMetadata(key, from), to);
}

/** The part of reflect-metadata, which Nest needs, that is used here. */
interface MetadataReflect {
  getMetadataKeys(target: unknown): unknown[];
  getMetadata(key: unknown, target: unknown): unknown;
  defineMetadata(key: unknown, value: unknown, target: unknown): void;
}

/** Nest finds out by `instanceof` which errors a filter is for; errors of another copy of the library belong to it, too. */
const AnyLockError = {
  [Symbol.hasInstance]: isLockError,
};

/** The part of Node's response by which one that has begun is ended. */
interface RawResponse {
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  end(): unknown;
}

/** Express' response, which is Node's, or Fastify's, which has Node's. */
interface HttpResponse extends RawResponse {
  readonly raw?: RawResponse;
  /** Fastify: its handler has taken the response over, or it has ended. */
  readonly sent?: boolean;
  status(code: number): HttpResponse;
  header(name: string, value: string): HttpResponse;
  send(body: string): unknown;
}

const INTERNAL_ERROR = 500;

/** A client of a gateway, as Nest's own filter tells it of an error. */
interface GatewayClient {
  emit(event: "exception", problem: LockProblem): unknown;
}

/**
 * Answers a LockError by its status and problem (see `holdfast/http`), on Express and Fastify, and logs it if the status
 * is 500. A response that has begun cannot tell it: the filter logs the error and ends the response. The client of a
 * gateway gets the problem as the event `exception`, and Nest's log gets the error. A microservice leaves the error to
 * Nest's own filter, which logs it and answers with an error. For others, such as GraphQL, the filter returns the error.
 * @example
 * (await NestFactory.create(AppModule)).useGlobalFilters(new LockExceptionFilter());
 */
export class LockExceptionFilter implements ExceptionFilter {
  readonly #logger = new Logger("LockExceptionFilter");

  /** Answers with the status and the problem of the error; Nest calls it. */
  catch(exception: unknown, host: ArgumentsHost): unknown {
    const problem = problemOf(exception);
    const type = host.getType<string>();
    // A returned value would be the answer, or none for a client that sent an event. With undefined Nest calls its own
    // filter.
    if (type === "rpc") return undefined;
    if (problem && type === "ws") return this.#tell(host.switchToWs().getClient(), problem, exception);
    if (!problem || type !== "http") return exception;
    this.#answer(host.switchToHttp().getResponse<HttpResponse>(), problem, exception);
    return undefined;
  }

  #answer(response: HttpResponse, problem: LockProblem, exception: unknown): void {
    const raw = response.raw ?? response;
    const hasBegun = raw.headersSent || response.sent;
    // As Nest's own filter: what is nobody's fault but the service's must not be known to the client alone.
    if (hasBegun || problem.status === INTERNAL_ERROR) this.#logger.error(exception);
    if (!hasBegun) {
      response
        .status(problem.status)
        .header("content-type", "application/problem+json")
        .send(JSON.stringify(problem));
    } else if (!raw.writableEnded) raw.end();
  }

  /** Nest calls no other filter then, so this filter does what Nest's own would do. */
  #tell(client: GatewayClient, problem: LockProblem, exception: unknown): void {
    client.emit("exception", problem);
    this.#logger.error(exception);
  }
}

Catch(AnyLockError as never)(LockExceptionFilter);
