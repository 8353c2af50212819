/**
 * A wall clock that a test moves or stops under a server. A library, loaded before libc, answers for the clock from what
 * a file says. libfaketime is no choice, because it recurses in jemalloc's first allocation; this library asks the kernel
 * itself and allocates nothing.
 */
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const SOURCE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Microseconds: by how much it is ahead, and where it stands unless that is 0. */
static volatile struct { int64_t ahead, stands; } *set;

__attribute__((constructor)) static void open_clock(void) {
  const char *path = getenv("HOLDFAST_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof *set, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) set = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (failed || !set || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t us = (int64_t)now->tv_sec * 1000000 + now->tv_nsec / 1000 + set->ahead;
  if (set->stands) us = set->stands;
  now->tv_sec = us / 1000000;
  now->tv_nsec = us % 1000000 * 1000;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec at;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &at)) return -1;
  now->tv_sec = at.tv_sec;
  now->tv_usec = at.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec at;
  if (clock_gettime(CLOCK_REALTIME, &at)) return -1;
  if (out) *out = at.tv_sec;
  return at.tv_sec;
}
`;

/** The reason why no clock can be moved on this machine, for `test.skipIf`; undefined if it can. */
export const noMovableClock: string | undefined = whyNot();

function whyNot(): string | undefined {
  if (process.platform !== "linux") return "LD_PRELOAD is Linux's";
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "there is no C compiler (cc)";
  }
}

export class MovableClock implements AsyncDisposable {
  readonly #directory: string;
  #ahead = 0;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** A clock that runs like the machine's at first, for `startRedis({ clock })`. */
  static async create(): Promise<MovableClock> {
    const clock = new MovableClock(await mkdtemp(join(tmpdir(), "holdfast-clock-")));
    await writeFile(clock.#path("clock.c"), SOURCE);
    await clock.step(0);
    const args = ["-shared", "-fPIC", "-O1", "-o", clock.#path("clock.so"), clock.#path("clock.c")];
    await promisify(execFile)("cc", args);
    return clock;
  }

  /** Environment variables for the server's process. */
  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.#path("clock.so"), HOLDFAST_TEST_CLOCK: this.#path("ahead") };
  }

  /** Moves the clock by `ms` from what it shows now; back if negative. */
  async step(ms: number): Promise<void> {
    this.#ahead += ms;
    await this.#set(0, this.#ahead === 0 && ms === 0 ? "w" : "r+");
  }

  /** Stops the clock at these epoch milliseconds until the next step. */
  async stopAt(ms: number): Promise<void> {
    await this.#set(ms, "r+");
  }

  async #set(stands: number, flag: "w" | "r+"): Promise<void> {
    const bytes = Buffer.alloc(16);
    bytes.writeBigInt64LE(BigInt(this.#ahead) * 1_000n);
    bytes.writeBigInt64LE(BigInt(stands) * 1_000n, 8);
    // Written in place, because the server has mapped this very file.
    await writeFile(this.#path("ahead"), bytes, { flag });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }
}
