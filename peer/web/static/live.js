// Keeps the parts marked data-live as they are on the server. Everything works without it.
"use strict";
(() => {
  const parts = document.querySelectorAll("[data-live]");
  if (!parts.length) return;
  const known = new Map(Array.from(parts, (part) => [part.id, part.innerHTML])); // as the server wrote them: an opened fold is no change
  async function look() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { cache: "no-store", redirect: "error", headers: { "X-Live": "1" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts) {
        const other = fresh.getElementById(part.id);
        if (other && !part.contains(document.activeElement) && known.get(part.id) !== other.innerHTML) {
          known.set(part.id, other.innerHTML);
          part.replaceChildren(...other.childNodes);
        }
      }
    } catch {
      // The program ended; the page stays as it was.
    }
  }
  setInterval(look, 3000);
})();
