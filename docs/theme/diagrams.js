// Draws the diagrams of a page. `make docs` puts the library next to the pages; without it, their text is shown.
(() => {
  const blocks = document.querySelectorAll("code.language-mermaid");
  if (blocks.length === 0) return;
  const script = document.createElement("script");
  script.src = `${path_to_root}mermaid.min.js`;
  script.onload = () => {
    for (const block of blocks) {
      const diagram = document.createElement("pre");
      diagram.className = "mermaid";
      diagram.textContent = block.textContent;
      block.parentElement.replaceWith(diagram);
    }
    const dark = ["coal", "navy", "ayu"].some((name) => document.documentElement.classList.contains(name));
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "default" });
    mermaid.run();
  };
  document.head.append(script);
})();
