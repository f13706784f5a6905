"use strict";
// The live parts. Every page works without this file.

const text = document.querySelector("textarea[data-lint]");
if (text) {
  const found = document.getElementById("linted");
  let waiting = 0;
  let running = null;
  const check = async () => {
    if (running) running.abort();
    running = new AbortController();
    const form = new URLSearchParams({ text: text.value, form_token: text.form.elements.form_token.value });
    try {
      const answer = await fetch(text.dataset.lint, { method: "POST", body: form, signal: running.signal });
      if (answer.ok) found.innerHTML = await answer.text();
    } catch (error) {
      if (error.name !== "AbortError") found.textContent = "The desk does not answer; the text is still here.";
    }
  };
  text.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, 600);
  });
}

const live = document.querySelectorAll("[data-live]");
if (live.length) {
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname);
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of live) {
        const fresh = page.querySelector(`[data-live="${part.dataset.live}"]`);
        if (fresh && !part.contains(document.activeElement) && fresh.innerHTML !== part.innerHTML) part.innerHTML = fresh.innerHTML;
      }
    } catch { /* the next one tries again */ }
  }, 10000);
}
