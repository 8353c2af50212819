/** `holdfast deadlocks`: owners that wait for each other. */
import { wallTime } from "../../base/platform.js";
import { circlesOf } from "../inspector/shown.js";
import { type Command, EXIT } from "./command.js";
import { allLocks, tellOfPart, waiterText } from "./locks.js";

export const deadlocks: Command = {
  name: "deadlocks",
  usage: "",
  summary: "finds circles of owners that wait for each other, over all processes",
  details: [
    "Clients report a wait before it is two seconds old, and its end up to a third of a watchdogTimeout later. So look twice",
    "before you act. A circle ends when one of its calls gives up, or when you take away one of its locks.",
    "The exit code is 1 if there is a circle.",
  ],
  words: { least: 0, most: 0 },
  act: async (task) => {
    const { connect, terminal } = task;
    const circles = circlesOf(await allLocks(connect().client, undefined));
    const now = wallTime();
    terminal.json(circles);
    for (const circle of circles) {
      terminal.say([...circle.map(({ held }) => held), circle[0]?.held].join(" → "), "bold");
      for (const { wanted, waiter } of circle) {
        terminal.say(`  waits for ${wanted}: ${waiterText(waiter, now)}`);
      }
    }
    if (circles.length === 0)
      terminal.say("There is no circle. Waits of the last two seconds may not be reported yet.");
    await tellOfPart(task);
    return circles.length > 0 ? EXIT.found : EXIT.ok;
  },
};
