/** The page and its parts, as they are sent. */
import { createHash } from "node:crypto";
import { APP_CSS, APP_JS, ICON_SVG, INDEX_HTML } from "./assets.js";
import { respond } from "./responses.js";

interface Asset {
  readonly type: string;
  readonly body: string;
}

export type AssetName = "app.js" | "app.css" | "icon.svg";

const FILES: Readonly<Record<AssetName, Asset>> = {
  "app.js": { type: "text/javascript; charset=utf-8", body: APP_JS },
  "app.css": { type: "text/css; charset=utf-8", body: APP_CSS },
  "icon.svg": { type: "image/svg+xml; charset=utf-8", body: ICON_SVG },
};

export const ASSETS: readonly AssetName[] = Object.keys(FILES) as AssetName[];

const version = createHash("sha256").update(APP_JS).update(APP_CSS).digest("base64url").slice(0, 12);

/** `canUnlock`: whether the page offers to unlock. The server decides anew at each request. */
export function pageResponse(token: string, canUnlock: boolean): Response {
  const body = INDEX_HTML.replaceAll("{{csrf}}", token)
    .replaceAll("{{unlock}}", canUnlock ? "yes" : "no")
    .replaceAll("{{version}}", version);
  const asset = { type: "text/html; charset=utf-8", body };
  return send(asset, "no-store");
}

export function assetResponse(name: AssetName): Response {
  return send(FILES[name], "private, max-age=31536000, immutable");
}

function send({ type, body }: Asset, cacheControl: string): Response {
  return respond(200, body, { "content-type": type, "cache-control": cacheControl });
}
