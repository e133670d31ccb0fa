// Chosen colours, applied before the first paint. No module: those run after it.
"use strict";
{
  const chosen = localStorage.getItem("archive-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
