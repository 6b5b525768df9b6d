/** Runs before the page is drawn, so that a theme that was chosen does not come as a flash. */
const chosen = localStorage.getItem('tocsin.theme');
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;

export {};
