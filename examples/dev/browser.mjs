/** Opens a page in the browser of whoever sits at this terminal. */
import { spawn } from 'node:child_process';

/** What opens a URL on this system; undefined where nobody could see it. */
function opener(url) {
  if (process.platform === 'darwin') return ['open', [url]];
  if (process.platform === 'win32') return ['explorer', [url]];
  const hasDisplay = process.env.DISPLAY !== undefined || process.env.WAYLAND_DISPLAY !== undefined;
  return hasDisplay && process.env.SSH_CONNECTION === undefined ? ['xdg-open', [url]] : undefined;
}

/**
 * Opens a page, where that is possible. `BROWSER=none` in the environment prevents it, as elsewhere.
 * @param {string} url
 */
export function openPage(url) {
  const found = process.env.BROWSER === 'none' ? undefined : opener(url);
  if (found === undefined) return;
  const child = spawn(found[0], found[1], { stdio: 'ignore', detached: true });
  // The address is printed as well, so nothing is lost where no browser is found.
  child.once('error', () => {});
  child.unref();
}
