/** The page in a real browser. HOLDFAST_PICTURES=write makes the pictures of the documentation. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createInspector, nodeHandler } from "../../../src/entries/inspector.js";
import { type Hold, LockClient } from "../../../src/index.js";
import { PATIENCE, type RedisServer, startRedis, UNHURRIED, until } from "../../support/index.js";
import { type App, serve } from "./apps.js";
import { noChromium, startChromium } from "./chromium.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const IMAGES = fileURLToPath(new URL("../../../docs/images/", import.meta.url));
const PHONE = { width: 375, height: 740 };
const MANY = 10_000;
const VIEWS = ["locks", "timeline", "durations", "graph"];

if (noChromium) {
  test("the page in a browser", (context) => {
    console.info(`The inspector's page was not tested: ${noChromium}.`);
    context.skip(noChromium);
  });
} else describe("the page", inBrowser);

function inBrowser(): void {
  let server: RedisServer;
  let client: LockClient;
  let other: LockClient;
  let app: App;
  let browser: Browser;
  const holds: Hold[] = [];
  /** What the browser refused to do, or failed to do. */
  const troubles: string[] = [];

  beforeAll(async () => {
    server = await startRedis();
    client = new LockClient(server.connect(), { ...UNHURRIED, watchdogTimeout: 10 * PATIENCE });
    other = new LockClient(server.connect(), {
      ...UNHURRIED,
      watchdogTimeout: 10 * PATIENCE,
      label: "orders-1",
    });
    const handle = nodeHandler(createInspector(client, { authorize: () => true, every: 200 }));
    app = await serve((request, response) => void handle(request, response), "/");
    browser = await startChromium();
    for (const name of ["order:1001", "report:daily", "stock:42"])
      holds.push(await other.getLock(name).lock());
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
    expect(troubles.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
    await Promise.all([client?.close({ timeout: 0 }), other?.close({ timeout: 0 })]);
    await server?.stop();
  });

  async function open(options: BrowserContextOptions = {}, view = "locks"): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 }, ...options });
    page.setDefaultTimeout(PATIENCE);
    page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
    page.on("pageerror", (error) => troubles.push(String(error)));
    await page.goto(`${app.url}#${view}`);
    await page.waitForSelector("#status[data-state=live]");
    return page;
  }

  const rows = (page: Page) => page.locator(".row:visible .name").allTextContents();

  async function findings(page: Page): Promise<string[]> {
    await page.evaluate(AXE);
    return page.evaluate(
      `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ target }) => target).join(" ")))`,
    );
  }

  const overflow = (page: Page) =>
    page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");

  async function picture(page: Page, name: string): Promise<void> {
    if (process.env.HOLDFAST_PICTURES === "write") await page.screenshot({ path: `${IMAGES}${name}.png` });
  }

  test("the search finds names and owners, and says when it finds nothing", async () => {
    const page = await open();
    await page.keyboard.press("/");
    await page.keyboard.type("REPORT");
    await until("one row", async () => (await rows(page)).join() === "report:daily");
    await page.fill("#search", holds[2]?.ownerId ?? "");
    await until("its lock", async () => (await rows(page)).join() === "stock:42");
    await page.fill("#search", "nothing at all");
    await page.waitForSelector("text=Nothing matches the search.");
  });

  test("a lock is found, looked at and unlocked by keyboard alone", async () => {
    const hold = await other.getLock("stuck").lock();
    const page = await open();
    await page.waitForSelector(".row >> text=stuck");
    await page.keyboard.press("/");
    await page.keyboard.type("stuck");
    await page.keyboard.press("ArrowDown");
    await page.waitForSelector("#detail:visible >> text=stuck");
    await page.keyboard.press("Enter");
    for (const id of ["close", "unlock"]) {
      await page.keyboard.press("Tab");
      expect(await page.evaluate("document.activeElement.id")).toBe(id);
    }
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm[open]");
    expect(await page.evaluate("document.activeElement.id")).toBe("cancel");
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#toast >> text=unlocked");
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await page.waitForSelector("#detail-log >> text=was forced to unlock");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#detail", { state: "hidden" });
  });

  test("the word on an unlock names the lock that was asked about, whatever is shown by then [B219]", async () => {
    await other.getLock("asked about").lock();
    const page = await open();
    let answer: (() => void) | undefined;
    await page.route("**/api/unlock", async (route) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      await route.continue();
    });
    await page.click(".row >> text=asked about");
    await page.click("#unlock");
    await page.click("#confirmed");
    await until("the request is on its way", () => answer);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#detail", { state: "hidden" });
    answer?.();
    await page.waitForSelector("#toast >> text=“asked about” is unlocked.");
  });

  test("processes are shown by their names, with what they hold and wait for", async () => {
    await using third = new LockClient(server.connect(), { ...UNHURRIED, label: "reports-2" });
    const mine = await third.getLock("page:7").lock();
    const giveUp = new AbortController();
    const wanted = third.getLock("stock:42").lock({ owner: mine, signal: giveUp.signal });
    const over = wanted.catch(() => undefined);
    const page = await open();
    await page.waitForSelector(".row:visible:has-text('page:7'):has-text('reports-2')");
    await page.click(".row >> text=stock:42");
    await page.waitForSelector("#holders >> text=orders-1");
    await page.waitForSelector(
      `#waiters:has-text('reports-2'):has-text('pid ${process.pid}'):has-text('holds page:7')`,
    );
    await picture(page, "inspector-light");
    await page.click("nav a[href='#graph']");
    await page.waitForSelector("#drawing svg[aria-label*='page:7']");
    await picture(page, "inspector-graph");
    giveUp.abort();
    await over;
    await mine.unlock();
    await page.click("nav a[href='#locks']");
    await page.waitForSelector(".row:visible >> text=page:7", { state: "detached" });
  });

  test("numbers are shown, names are in their natural order, long ones lose their middle, and what is free has no Unlock [B285]", async () => {
    const long = `tenant:${"x".repeat(200)}:invoices`;
    await other.getSemaphore("n:places").trySetPermits(3);
    const taken = await Promise.all(["n:10", "n:2", long].map((name) => other.getLock(name).lock()));
    const page = await open({ viewport: PHONE });
    await page.fill("#search", "n:");
    await until("they are sorted", async () => (await rows(page)).join() === "n:2,n:10,n:places");
    await page.waitForSelector(".row:visible >> text=3 free");
    await page.click(".row >> text=n:places");
    await page.waitForSelector("#detail-facts >> text=semaphore · 3 free");
    expect(await page.isVisible("#unlock")).toBe(false);
    await page.click("#close");
    await page.fill("#search", "tenant");
    await page.waitForSelector(".row:visible .name >> text=:invoices");
    const end = await page.locator(".row:visible .name > :last-child").boundingBox();
    expect(end && end.x + end.width).toBeLessThan(PHONE.width);
    await Promise.all(taken.map((hold) => hold.unlock()));
    await other.getSemaphore("n:places").drainPermits();
  });

  test("the timeline, the durations and the graph show what happened", async () => {
    const page = await open({}, "timeline");
    const held = await other.getFairLock("contended").lock();
    const next = other.getFairLock("contended").lock();
    await page.waitForSelector("#log >> text=contended");
    await page.click("nav a[href='#graph']");
    await page.waitForSelector("#drawing svg[aria-label*='waits for contended']");
    await held.unlock();
    await (await next).unlock();
    await page.click("nav a[href='#timeline']");
    await page.waitForSelector("#log >> text=gave back");
    expect(await page.locator("#lanes rect.span").count()).toBeGreaterThan(0);
    await page.click("nav a[href='#durations']");
    await page.waitForSelector("#holds table");
    expect(await overflow(page)).toBe(0);
  });

  test("the timeline is blank from when a hold was last seen, if it ended while nobody looked on [B286]", async () => {
    const first = await open({}, "timeline");
    const hold = await other.getLock("unwatched").lock();
    await first.waitForSelector("#log >> text=unwatched");
    await first.close();
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const scans = async () =>
      /cmdstat_scan:calls=\d+/.exec(String(await server.call("INFO", "commandstats")))?.[0];
    await until("nobody looks on", async () => {
      const before = await scans();
      await pause(1_000);
      return (await scans()) === before;
    });
    await hold.unlock();
    // So that a bar through that time would be seen.
    await pause(3_000);
    const page = await open({}, "timeline");
    await page.waitForSelector("#log li:has-text('unwatched'):has-text('while nobody watched')");
    const [end, now] = await page.evaluate<[number, number]>(`(() => {
      const [lane] = [...document.querySelectorAll("#lanes text")].filter((text) => /unwatched/.test(text.textContent));
      const bar = lane.nextElementSibling;
      const end = Number(bar.getAttribute("x")) + Number(bar.getAttribute("width"));
      return [end, Number(lane.ownerSVGElement.getAttribute("width"))];
    })()`);
    expect(now - end).toBeGreaterThan(15);
  });

  test("a dead-lock is told and stands first [B285]", async () => {
    await using one = new LockClient(server.connect(), UNHURRIED);
    await using two = new LockClient(server.connect(), UNHURRIED);
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const [first, second] = [await one.getLock("dead:1").lock(), await two.getLock("dead:2").lock()];
    const over = [
      one.getLock("dead:2").lock({ owner: first, signal }),
      two.getLock("dead:1").lock({ owner: second, signal }),
    ].map((call) => call.catch(() => undefined));
    const chain = await other.getLock("chain").lock();
    over.push(
      ...[
        other.getLock("dead:2").lock({ owner: chain, signal }),
        client.getLock("chain").lock({ signal }),
      ].map((call) => call.catch(() => undefined)),
    );
    const page = await open({ viewport: PHONE }, "graph");
    await page.waitForSelector("#drawing svg[aria-label*='waits for chain']");
    await page.waitForSelector("#cycles[data-found]");
    const told = (await page.textContent("#cycles")) ?? "";
    expect(told).toMatch(/^Dead-lock: “dead:([12])” waits for “dead:[12]” waits for “dead:\1”\.$/);
    expect(await page.locator("#drawing title").allTextContents()).toContain("dead:1");
    expect([await findings(page), await overflow(page)]).toEqual([[], 0]);
    // The circle stands first, one below the other, wherever it is waited for.
    const places = await page.evaluate(
      `[...document.querySelectorAll("#drawing rect.cycle")].map((box) => box.getAttribute("x"))`,
    );
    expect(places).toEqual(["4", "4"]);
    expect(await page.isVisible("#goes-on")).toBe(true);
    await page.click("nav a[href='#locks']");
    expect(await page.locator(".row.stuck:visible .name").allTextContents()).toEqual(["dead:1", "dead:2"]);
    await page.click(".row >> text=dead:1");
    await page.waitForSelector("#holders li >> text=pid");
    expect([await findings(page), await overflow(page)]).toEqual([[], 0]);
    giveUp.abort();
    await Promise.all(over);
    await Promise.all([first.unlock(), second.unlock(), chain.unlock()]);
    await page.waitForSelector(".row:visible >> text=dead:1", { state: "detached" });
  });

  describe.each([
    ["light", { colorScheme: "light" as const }],
    ["dark", { colorScheme: "dark" as const }],
    ["phone", { viewport: PHONE, hasTouch: true }],
  ])("%s", (look, options) => {
    test("axe finds nothing in any view, and nothing scrolls sideways", async () => {
      const page = await open(options);
      await page.click(".row >> text=stock:42");
      await page.waitForSelector("#holders b");
      if (look !== "light") await picture(page, `inspector-${look}`);
      for (const view of VIEWS) {
        expect([view, await findings(page)]).toEqual([view, []]);
        expect([view, await overflow(page)]).toEqual([view, 0]);
        if (view === "locks") await page.click("#close");
        await page.click(`nav a[href='#${VIEWS[VIEWS.indexOf(view) + 1] ?? "locks"}']`);
      }
      const [dark, light] = ["rgb(14, 19, 24)", "rgb(246, 247, 249)"];
      const colour = await page.evaluate("getComputedStyle(document.body).backgroundColor");
      expect(colour).toBe(look === "dark" ? dark : light);
    });
  });

  test(`${MANY} locks: few rows exist, and the last is as near as the first`, async () => {
    const redis = server.connect();
    for (let i = 0; i < MANY; i += 1_000) {
      const pipeline = redis.pipeline();
      for (let k = i; k < i + 1_000; k++) {
        pipeline.hset(`many:${String(k).padStart(5, "0")}`, `${crypto.randomUUID()}:1`, "1");
        pipeline.pexpire(`many:${String(k).padStart(5, "0")}`, 60 * PATIENCE);
      }
      await pipeline.exec();
    }
    const began = performance.now();
    const page = await open();
    await page.waitForSelector(".row:visible");
    const first = performance.now() - began;
    await page.waitForFunction(`document.querySelector("#numbers").textContent.startsWith("10,0")`);
    const all = performance.now() - began;
    console.info(`${MANY} locks: first row after ${first.toFixed(0)} ms, all after ${all.toFixed(0)} ms`);
    expect(await page.locator(".row").count()).toBeLessThan(60);
    await page.focus("#list");
    await page.keyboard.press("End");
    await page.waitForSelector(".row[aria-selected=true] >> text=stock:42");
    await page.fill("#search", "many:07777");
    await until("its row", async () => (await rows(page)).join() === "many:07777");
    expect(await findings(page)).toEqual([]);
  });
}
