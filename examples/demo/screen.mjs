// What a person sees. In a terminal the timeline of a step is drawn again and again while the step runs; elsewhere (a
// file, a pipe, CI) it is printed once, when the step is over.
import { now } from "./clock.mjs";
import { drawLanes, GLYPHS, paint } from "./lanes.mjs";
import { MARKS, STATES } from "./timeline.mjs";

const REDRAW = 100;
const PLAIN_WIDTH = 80;
const WIDEST = 120;
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
const CLEAR_BELOW = "\x1b[J";

export class Screen {
  #out;
  #timeline;
  #live;
  #colours;
  #timer;
  #closed = false;
  /** Lines of the block that is drawn over. */
  #drawn = 0;

  constructor(out) {
    this.#out = out;
    this.#live = out.isTTY === true && process.env.TERM !== "dumb";
    this.#colours = this.#live && !process.env.NO_COLOR;
    if (this.#live) out.write(HIDE_CURSOR);
  }

  say(line = "", kind = undefined) {
    this.#write(`${kind ? paint(kind, line, this.#colours) : line}\n`);
  }

  legend() {
    let row = "";
    let length = 0;
    for (const [kind, text] of [...Object.entries(STATES), ...Object.entries(MARKS)]) {
      const item = length + text.length + 5;
      if (item > this.#width) {
        this.say(row);
        row = "";
      }
      length = row === "" ? text.length + 5 : item;
      row += `   ${paint(kind, GLYPHS[kind], this.#colours)} ${text}`;
    }
    this.say(row);
    this.say();
  }

  begin(timeline, step) {
    this.#timeline = timeline;
    this.say(`${step.number}  ${step.title}`, "title");
    for (const line of step.code.split("\n")) this.say(`   ${line}`, "faint");
    if (!this.#live) return;
    this.#draw(step);
    this.#timer = setInterval(() => this.#draw(step), REDRAW);
  }

  /** `lines`: what happened, or why not. */
  end(step, ok, lines) {
    clearInterval(this.#timer);
    this.#draw(step);
    this.#drawn = 0;
    for (const [i, line] of lines.entries()) {
      const sign = i > 0 ? " " : ok ? paint("good", "✓", this.#colours) : paint("bad", "✗", this.#colours);
      for (const [j, part] of this.#wrap(line).entries()) {
        this.say(`   ${j > 0 ? " " : sign} ${ok ? part : paint("bad", part, this.#colours)}`);
      }
    }
    this.say();
  }

  table(rows) {
    for (const { ok, text } of rows) this.say(`  ${ok ? "✓" : "✗"} ${text}`, ok ? "good" : "bad");
  }

  /** Leaves the terminal as it was, and writes nothing more. */
  close() {
    clearInterval(this.#timer);
    if (this.#live) this.#write(SHOW_CURSOR);
    this.#closed = true;
  }

  #write(text) {
    if (!this.#closed) this.#out.write(text);
  }

  get #width() {
    return Math.min(this.#live ? (this.#out.columns ?? PLAIN_WIDTH) : PLAIN_WIDTH, WIDEST) - 1;
  }

  /** Between words, for terminals; where lines are searched, they stay whole. */
  #wrap(line) {
    if (!this.#live) return [line];
    const parts = [""];
    for (const word of line.split(" ")) {
      if (`     ${parts.at(-1)} ${word}`.length > this.#width) parts.push(word);
      else parts.push(`${parts.pop()} ${word}`.trim());
    }
    return parts;
  }

  #draw(step) {
    const lines = drawLanes(this.#timeline, step, step.to ?? now(), this.#width, this.#colours);
    const back = this.#drawn > 0 ? `\x1b[${this.#drawn}A\r${CLEAR_BELOW}` : "";
    this.#write(`${back}${lines.join("\n")}\n`);
    this.#drawn = lines.length;
  }
}
