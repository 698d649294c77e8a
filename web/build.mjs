/** Build the page: one script and one style sheet, with the hash of the source that they come from. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync, mkdirSync, rmSync, existsSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "torchlens", "drawing", "page", "bundle");

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

/** SHA-256 over the names and contents of everything that the bundle is made from. */
function sourceHash() {
  const hash = createHash("sha256");
  const sources = [...files(join(here, "src")), ...["build.mjs", "package.json", "package-lock.json"].map((name) => join(here, name))];
  const named = sources.map((path) => [relative(here, path).replaceAll("\\", "/"), path]);
  for (const [name, path] of named.sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${name}\0`).update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex");
}

const options = { bundle: true, minify: true, charset: "utf8", write: false, absWorkingDir: here, logLevel: "error" };
const script = await build({
  ...options, entryPoints: ["src/main.ts"], format: "iife", target: "es2021", legalComments: "none", tsconfigRaw: {},
});
const style = await build({ ...options, entryPoints: ["src/page.css"] });
const licence = readFileSync(join(here, "node_modules", "@dagrejs", "dagre", "LICENSE"), "utf8");

if (existsSync(target)) rmSync(target, { recursive: true });
mkdirSync(target, { recursive: true });
writeFileSync(join(target, "page.js"), script.outputFiles[0].text.replaceAll("</script", "<\\/script"));
writeFileSync(join(target, "page.css"), style.outputFiles[0].text);
writeFileSync(join(target, "source.sha256"), `${sourceHash()}\n`);
writeFileSync(join(target, "LICENSES.txt"), `The script contains @dagrejs/dagre under this licence:\n\n${licence}`);
