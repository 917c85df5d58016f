// Waits for a table that is being computed.

const EVERY = 1000; // milliseconds

async function look() {
  if (!document.hidden) {
    try {
      const fresh = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const table = fresh.getElementById("table");
      if (table && !table.querySelector(".waiting")) {
        document.getElementById("table").replaceChildren(...table.childNodes);
        return;
      }
    } catch {
      // the server is away; ask again
    }
  }
  setTimeout(look, EVERY);
}

setTimeout(look, EVERY);
