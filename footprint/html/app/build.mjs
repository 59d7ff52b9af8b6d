// Builds the script and style of the report: `npm run build`. With --check it only compares the committed files with the build.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));

const { outputFiles } = await build({
  entryPoints: [`${here}src/app.ts`, `${here}src/app.css`],
  outdir: `${here}..`,
  bundle: true,
  minify: true,
  write: false,
  charset: "ascii",
  target: ["chrome103", "firefox113", "safari16.4"],
  banner: { js: "/* footprint, Apache-2.0 */" },
  logLevel: "warning",
});

let isFresh = true;
for (const { path, text } of outputFiles) {
  const stands = await readFile(path, "utf8").catch(() => "");
  if (stands === text) continue;
  isFresh = false;
  if (process.argv.includes("--check")) console.error(`${path} differs from the build of its sources: npm run build`);
  else await writeFile(path, text);
}
if (process.argv.includes("--check") && !isFresh) process.exit(1);
