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
    const form = new URLSearchParams({ text: text.value, draft: text.form.elements.draft.value, form_token: text.form.elements.form_token.value });
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

const form = document.querySelector("form[data-outlook]");
if (form) {
  const shown = document.getElementById("outlook");
  let waiting = 0;
  let running = null;
  const look = async () => {
    if (running) running.abort();
    running = new AbortController();
    const sent = new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string"));
    shown.textContent = "The study is being tried on made-up people, which takes some seconds.";
    try {
      const answer = await fetch(form.dataset.outlook, { method: "POST", body: sent, signal: running.signal });
      if (answer.ok) shown.innerHTML = await answer.text();
    } catch (error) {
      if (error.name !== "AbortError") shown.textContent = "The desk does not answer; what you typed is still here.";
    }
  };
  const read = async () => {
    if (reading) reading.abort();
    reading = new AbortController();
    const sent = new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string"));
    try {
      const answer = await fetch(form.dataset.reading, { method: "POST", body: sent, signal: reading.signal });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const fresh of page.querySelectorAll("[data-part]")) {
        document.querySelector(`[data-part="${fresh.dataset.part}"]`).replaceChildren(...fresh.childNodes);
      }
    } catch {
      // A newer change is read instead, or the desk ended; the outlook says so.
    }
  };
  let reading = null;
  const changed = (event) => {
    if (event.target.id === "epsilon") document.getElementById("epsilon-now").textContent = event.target.value;
    for (const short of document.querySelectorAll(`[data-short="${event.target.id}"]`)) {
      short.textContent = event.target.value.split("\n").map((line) => line.trim()).filter(Boolean).join(", ");
    }
    const row = event.target.closest(".columns tbody");
    if (row && event.target.type !== "checkbox") {
      const cell = event.target.id.endsWith("_categories") ? row.querySelector(".ranged") : event.target.closest("td");
      for (const note of cell ? cell.querySelectorAll(".fresh") : []) note.hidden = true;
    }
    if (event.target.type === "file" || event.target.name === "new_column") return;
    clearTimeout(waiting);
    waiting = setTimeout(() => { read(); look(); }, 700);
  };
  form.addEventListener("input", changed);
  form.addEventListener("change", (event) => { if (event.target.tagName === "SELECT") changed(event); });
  form.addEventListener("keydown", (event) => {
    const next = event.target.closest(".step")?.querySelector("a.next");
    if (event.key !== "Enter" || !next || event.target.type !== "text") return;
    event.preventDefault();
    next.click();
  });
  const atStep = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const step = (target && target.closest(".step")) || document.getElementById("step-1");
    for (const link of form.querySelectorAll(".steps a")) {
      if (link.hash === `#${step.id}`) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };
  addEventListener("hashchange", atStep);
  atStep();
  if (!matchMedia("(min-width: 72rem)").matches) form.querySelector(".student").open = false;
}

const sample = document.getElementById("sample");
if (sample) {
  sample.addEventListener("change", () => {
    if (sample.files.length) sample.form.requestSubmit(document.getElementById("read-columns"));
  });
}

const forecast = document.querySelector("[data-forecast]");
if (forecast) {
  forecast.textContent = "This study is being tried on made-up people, which takes some seconds. You need not wait.";
  const { text: study, draft, form_token } = document.forms.publish.elements;
  const body = new URLSearchParams({ text: study.value, draft: draft.value, form_token: form_token.value });
  fetch(forecast.dataset.forecast, { method: "POST", body })
    .then(async (answer) => { if (answer.ok) forecast.innerHTML = await answer.text(); })
    .catch(() => { forecast.textContent = "The desk does not answer."; });
}

const label = document.getElementById("label");
if (label) {
  label.addEventListener("change", () => {
    for (const box of document.querySelectorAll("input[data-column]")) {
      const predicted = box.dataset.column === label.value;
      if (predicted) box.checked = false;
      box.closest("th").querySelector(".predicted").hidden = !predicted;
    }
    const yes = document.getElementById("positive");
    if (!yes.value.trim()) yes.value = label.selectedOptions[0].dataset.yes || "";
  });
}

const pace = document.getElementById("pace");
if (pace) {
  pace.addEventListener("change", () => {
    for (const field of document.querySelectorAll("[data-trial]")) {
      const [left, begun] = pace.value ? [field.dataset.real, field.dataset.trial] : [field.dataset.trial, field.dataset.real];
      if (field.value === left) field.value = begun;
    }
  });
}

const parts = document.querySelectorAll("[data-live]");
if (parts.length) {
  const keepFolds = (shown, fresh) => {
    for (const fold of shown.querySelectorAll("details[data-key]")) {
      const other = fresh.querySelector(`details[data-key="${fold.dataset.key}"]`);
      if (other) other.open = fold.open;
    }
  };
  let looked = Date.now();
  setInterval(async () => {
    const soon = document.querySelector("[data-soon]");
    if (document.hidden || (!soon && Date.now() - looked < 10000)) return;
    looked = Date.now();
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts) {
        const fresh = page.querySelector(`[data-live="${part.dataset.live}"]`);
        if (!fresh || part.contains(document.activeElement)) continue;
        keepFolds(part, fresh);
        if (fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
      }
    } catch {
      // The desk ended, or is busy; the next look tries again.
    }
  }, 2000);
}
