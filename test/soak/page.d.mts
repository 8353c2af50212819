import type { Report } from "./report.js";

export function pageOf(report: Report): string;
