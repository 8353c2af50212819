/** The bundled part of the model, run in a process: a share of the histories, or of the mistakes that are to be found. */
import { play, tell } from "./history.js";
import { PLANTED } from "./planted.js";

export interface Job {
  readonly seed: number;
  readonly histories: number;
  /** Looks for the planted mistakes, in at most so many histories each. */
  readonly isPlanted?: boolean;
  readonly part: number;
  readonly parts: number;
}

export interface Report {
  /** How each failure is told; of planted mistakes how many histories it took, 0 if none has shown it. */
  readonly failures: string[];
  readonly found: Record<string, number>;
  readonly figures: Record<string, number>;
}

/** Who has seen so many failures has seen enough. */
const MOST_FAILURES = 5;

/** Who has started this process may have ended meanwhile. */
process.on("disconnect", () => process.exit());
const rest = () => new Promise(setImmediate);

async function search({ seed, histories, part, parts }: Job): Promise<Report> {
  const report: Report = { failures: [], found: {}, figures: { histories: 0 } };
  const { failures, figures } = report;
  for (let i = part; i < histories && failures.length < MOST_FAILURES; i += parts) {
    if (i % 100 === part) await rest();
    const result = play(seed + i);
    figures.histories = (figures.histories ?? 0) + 1;
    for (const [what, count] of Object.entries(result.figures)) figures[what] = (figures[what] ?? 0) + count;
    if (result.failure !== undefined) failures.push(tell(seed + i));
  }
  return report;
}

async function searchMistakes({ seed, histories, part, parts }: Job): Promise<Report> {
  const found: Record<string, number> = {};
  for (const { name, manner } of PLANTED.filter((_each, i) => i % parts === part)) {
    await rest();
    let i = 0;
    while (i < histories && play(seed + i, manner).failure === undefined) i++;
    found[name] = i < histories ? i + 1 : 0;
  }
  return { failures: [], found, figures: {} };
}

const job = JSON.parse(process.argv[2] ?? "{}") as Job;
void (job.isPlanted ? searchMistakes(job) : search(job)).then((report) =>
  process.send?.(report, () => process.disconnect()),
);
