// Parses every diagram of the pages with Mermaid itself: diagrams.mjs <mermaid.min.js> <file or folder>...
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [library, ...roots] = process.argv.slice(2);

// Parsing draws nothing: the library asks only whether there is a document.
Object.assign(globalThis, {
  window: globalThis,
  self: globalThis,
  addEventListener() {},
  Element: class {},
  document: {
    nodeType: 9,
    documentElement: {},
    body: {},
    currentScript: null,
    addEventListener() {},
    createElement: () => ({ style: {} }),
    implementation: { createHTMLDocument: () => ({}) },
  },
});
vm.runInThisContext(fs.readFileSync(library, "utf8"));

function pages(root) {
  if (!fs.statSync(root).isDirectory()) return [root];
  const names = fs.readdirSync(root, { recursive: true }).filter((name) => name.endsWith(".md"));
  return names.map((name) => path.join(root, name)).sort();
}

let diagrams = 0;
let wrong = 0;
for (const page of roots.flatMap(pages)) {
  for (const [, text] of fs.readFileSync(page, "utf8").matchAll(/^```mermaid\n([^]*?)^```$/gm)) {
    diagrams += 1;
    try {
      await globalThis.mermaid.parse(text);
    } catch (error) {
      wrong += 1;
      console.error(`${page}: ${error.message}`);
    }
  }
}
console.log(`${diagrams} diagrams, ${wrong} with errors`);
process.exitCode = diagrams > 0 && wrong === 0 ? 0 : 1;
