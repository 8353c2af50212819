/**
 * A small shop in Nest, as its users would write it, except that the decorators are called by hand. `nestjs` is what
 * `holdfast/nestjs` exports.
 */
import "reflect-metadata";
import { Controller, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";

/** Applies decorators as the compiler would: from the last to the first. */
export function decorateMethod(Class, key, ...decorators) {
  const { prototype } = Class;
  const before = Object.getOwnPropertyDescriptor(prototype, key);
  const after = decorators.reduceRight((given, decorate) => decorate(prototype, key, given) ?? given, before);
  Object.defineProperty(prototype, key, after);
}

/** `locks`: the imported LockModule; `sell(client)`: what a sale does under the lock "stock". */
export async function startShop({ Locked, InjectLockClient, LockExceptionFilter }, locks, sell) {
  class Shop {
    constructor(client) {
      this.client = client;
    }
    async sell() {
      return sell(this.client);
    }
    async try() {
      return {};
    }
  }
  InjectLockClient()(Shop, undefined, 0);
  decorateMethod(
    Shop,
    "sell",
    Locked(() => "stock", { wait: 60_000 }),
    Post("/"),
  );
  decorateMethod(Shop, "try", Post("/try"), Locked("stock", { wait: 0 }));
  Controller()(Shop);

  class AppModule {}
  const app = await NestFactory.create(
    { module: AppModule, imports: [locks], controllers: [Shop] },
    { logger: false },
  );
  app.useGlobalFilters(new LockExceptionFilter());
  await app.listen(0, "127.0.0.1");
  return { app, shop: app.get(Shop), port: app.getHttpServer().address().port };
}

/**
 * A module that provides what `forRootAsync` injects.
 * @public to the tests, which load this file late
 */
export function configured(url) {
  class ConfigModule {}
  return { module: ConfigModule, providers: [{ provide: "url", useValue: url }], exports: ["url"] };
}
