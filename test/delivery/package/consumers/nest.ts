/** This shop in Nest is compiled as Nest's starter does it, on each version. It serves some requests, and shuts down. */
import manifest from "../../../../package.json" with { type: "json" };
import versions from "../versions/package.json" with { type: "json" };
import type { Row } from "./table.js";

const SHOP = `import "reflect-metadata";
import { Controller, Injectable, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { LockClient } from "holdfast";
import { InjectLockClient, Locked, LockExceptionFilter, LockModule } from "holdfast/nestjs";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL as string);

@Injectable()
class Stock {
  constructor(@InjectLockClient() private readonly locks: LockClient) {}

  @Locked((what: string) => what, { wait: 60_000 })
  async sell(what: string): Promise<boolean> {
    const left = Number(await redis.get("left"));
    const isHeld = this.locks.getLock(what).currentHold()?.isHeld === true;
    if (left > 0) await redis.set("left", left - 1);
    return isHeld && left > 0;
  }
}

@Controller()
class Shop {
  // By its type alone.
  constructor(private readonly stock: Stock, private readonly locks: LockClient) {}

  @Post()
  async sell(): Promise<object> {
    return { sold: await this.stock.sell("stock") };
  }

  @Locked("stock", { wait: 0 })
  @Post("try")
  async try(): Promise<object> {
    return { id: this.locks.id };
  }

  // The last chance with each version, in a module that imports that of the locks.
  async beforeApplicationShutdown(): Promise<void> {
    console.log("still held:", await this.locks.getLock("end").run(({ isHeld }) => isHeld));
  }
}

@Module({ imports: [LockModule.forRoot({ redis })], controllers: [Shop], providers: [Stock] })
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: false });
  app.useGlobalFilters(new LockExceptionFilter());
  await app.listen(0, "127.0.0.1");
  const url = await app.getUrl();
  const post = (path: string) => fetch(url + path, { method: "POST" });
  await redis.set("left", 1);
  for (let i = 0; i < 2; i++) console.log(await (await post("/")).json());
  const rival = LockClient.connect(process.env.REDIS_URL as string);
  const hold = await rival.getLock("stock").lock();
  const refused = await post("/try");
  console.log(refused.status, ((await refused.json()) as { code: string }).code);
  await hold.unlock();
  console.log((await post("/try")).status);
  await rival.close();
  await app.close();
  console.log("left locked:", (await redis.exists("stock")) === 1);
  redis.disconnect();
}
void main();
`;

/** Nest 12 is an ES module, the others are CommonJS. */
const tsconfig = (isEsm: boolean): string => {
  const module = isEsm ? "nodenext" : "commonjs";
  const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true };
  const compilerOptions = {
    module,
    target: "es2021",
    outDir: "out",
    ...decorators,
    strict: true,
    skipLibCheck: true,
  };
  return JSON.stringify({ compilerOptions, files: ["shop.ts"] });
};

const { "reflect-metadata": metadata, rxjs, ioredis, "@nestjs/core": newest } = manifest.devDependencies;

const ofVersion = (version: string, type: NonNullable<Row["type"]> = "commonjs"): Row => ({
  name: `Nest ${version}: a shop, compiled with its decorators`,
  type,
  // test/entries has the same in one process, with the newest version of its major.
  long: true,
  packages: {
    ioredis,
    "@nestjs/common": version,
    "@nestjs/core": version,
    "@nestjs/platform-express": version,
    "@types/node": manifest.devDependencies["@types/node"],
    "reflect-metadata": metadata,
    rxjs,
    "typescript5.9": versions.dependencies["typescript5.9"],
  },
  files: { "shop.ts": SHOP, "tsconfig.json": tsconfig(type === "module") },
  commands: [
    ["node", "node_modules/typescript5.9/bin/tsc", "-p", "."],
    ["node", "out/shop.js"],
  ],
  prints: `{ sold: true }
{ sold: false }
409 WAIT_TIMEOUT
201
still held: true
left locked: false
`,
});

export const NEST: readonly Row[] = [ofVersion("10.4.22"), ofVersion(newest), ofVersion("12.5.1", "module")];
