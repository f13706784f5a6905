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
// Notifications, where the owner asked for them: the server gives a fixed sentence now and then, while a page is open.
(() => {
  const offer = document.getElementById("notices"), can = "Notification" in window;
  const say = () => {
    const standing = can ? Notification.permission : "none";
    for (const line of offer.querySelectorAll("[data-when]")) line.hidden = line.dataset.when !== standing;
    return standing;
  };
  if (offer) {
    offer.hidden = false;
    say();
    for (const button of offer.querySelectorAll("[data-ask]")) button.addEventListener("click", async (event) => {
      if (can && Notification.permission === "granted") return;
      event.preventDefault();
      if (can) await Notification.requestPermission();
      if (say() === "granted" && button.name) button.form.requestSubmit(button);
    });
  }
  async function look() {
    if (Notification.permission !== "granted") return;
    try {
      const answer = await fetch("/notices", { cache: "no-store", redirect: "error" });
      if (answer.status === 200) new Notification("AnonML", { body: await answer.text(), lang: document.documentElement.lang }).onclick = () => window.focus();
    } catch {
      // The program ended, or this browser shows none from a page.
    }
  }
  if (can && "notices" in document.body.dataset) {
    look();
    setInterval(look, 60000);
  }
})();
