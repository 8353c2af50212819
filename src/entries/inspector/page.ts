/** The page and its parts, as they are sent. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { APP_CSS, APP_JS, ICON_SVG, INDEX_HTML } from "./assets.js";
import { acceptsGzip, respond } from "./responses.js";

interface Asset {
  readonly type: string;
  readonly body: string;
  compressed?: Buffer;
}

export type AssetName = "app.js" | "app.css" | "icon.svg";

const FILES: Readonly<Record<AssetName, Asset>> = {
  "app.js": { type: "text/javascript; charset=utf-8", body: APP_JS },
  "app.css": { type: "text/css; charset=utf-8", body: APP_CSS },
  "icon.svg": { type: "image/svg+xml; charset=utf-8", body: ICON_SVG },
};

export const ASSETS: readonly AssetName[] = Object.keys(FILES) as AssetName[];

const version = createHash("sha256").update(APP_JS).update(APP_CSS).digest("base64url").slice(0, 12);

/** `canUnlock`: whether the page offers it. The server decides anew each time. */
export function pageResponse(request: Request, token: string, canUnlock: boolean): Response {
  const body = INDEX_HTML.replaceAll("{{csrf}}", token)
    .replaceAll("{{unlock}}", canUnlock ? "yes" : "no")
    .replaceAll("{{version}}", version);
  const asset = { type: "text/html; charset=utf-8", body };
  return send(request, asset, "no-store");
}

export function assetResponse(request: Request, name: AssetName): Response {
  return send(request, FILES[name], "private, max-age=31536000, immutable");
}

function send(request: Request, asset: Asset, cacheControl: string): Response {
  const headers = { "content-type": asset.type, "cache-control": cacheControl, vary: "accept-encoding" };
  if (!acceptsGzip(request)) return respond(200, asset.body, headers);
  asset.compressed ??= gzipSync(asset.body);
  return respond(200, asset.compressed, { ...headers, "content-encoding": "gzip" });
}
