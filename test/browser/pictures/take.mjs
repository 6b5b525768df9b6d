/**
 * `npm run pictures`: takes the pictures of the dashboard that the documents show, light and dark, into docs/operate/pictures.
 * It plays a story of some minutes against a real queue (`story.mjs`); `-- --minutes 1` makes it shorter.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launchBrowser } from '../support/browser.mjs';
import { startServers } from '../support/server.mjs';
import { openShop, tellDay, turn } from './story.mjs';

const folder = fileURLToPath(new URL('../../../docs/operate/pictures/', import.meta.url));
const WIDTH = 1280;

const minutes = Number(process.argv[process.argv.indexOf('--minutes') + 1]) || 6;

const servers = await startServers({
  entry: 'test/browser/pictures/handler.ts',
  handlers: { 'payment.*': 'HANDLER', 'email.*': 'HANDLER', 'report.*': 'HANDLER', 'story.*': 'HANDLER' },
});
const receiver = createServer((_, response) => response.end());
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const browser = await launchBrowser();

async function call(method, path, body) {
  const response = await fetch(`${servers.open}/ojs/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

/** Takes one picture in each theme. `act` does what is to be seen. */
async function take(name, path, { height = 800, width = WIDTH, act } = {}) {
  for (const theme of ['light', 'dark']) {
    const context = await browser.newContext({
      baseURL: servers.open,
      colorScheme: theme,
      viewport: { width, height },
      reducedMotion: 'reduce',
      timezoneId: 'Europe/Vienna',
      locale: 'en-US',
    });
    const page = await context.newPage();
    await page.goto(path);
    await page.locator('h1').waitFor();
    await page.waitForLoadState('networkidle');
    await act?.(page);
    await page.waitForLoadState('networkidle');
    // A chart is drawn by code that is loaded when there is one.
    if ((await page.locator('.chart').count()) > 0) await page.locator('.chart canvas, .chart svg').first().waitFor();
    const file = join(folder, `${name}-${theme}.png`);
    writeFileSync(file, await page.screenshot());
    console.log(`${name}-${theme}.png ${Math.round(readFileSync(file).length / 1024)} kB`);
    await context.close();
  }
}

try {
  mkdirSync(folder, { recursive: true });
  await openShop(call);
  await call('POST', 'webhooks/subscriptions', {
    url: `http://127.0.0.1:${receiver.address().port}/on-call`,
    events: ['alert.*', 'job.discarded'],
  });
  await call('POST', 'admin/alerts', {
    name: 'payments fail',
    queue: 'payments',
    metric: 'error_rate',
    above: 0.2,
    for: '5s',
  });
  console.log(`A day in ${minutes} minutes …`);
  await tellDay(call, minutes * 60_000);

  await take('overview', '/ui');
  await take('queue', '/ui/queues/payments');
  await take('failures', '/ui/failures');
  const [group] = (await call('GET', 'admin/failures')).items;
  await take('group', `/ui/failures?group=${group.fingerprint}`);
  await take('job', `/ui/jobs/${group.sample.job_id}`);
  await take('phone', '/ui', { width: 390, height: 780 });

  await call('POST', 'queues/payments/pause');
  await turn(call, 'up');
  await call('POST', 'queues/payments/resume');
  await call('POST', `admin/failures/${group.fingerprint}/redrive`, { confirm: true });
  await tellDay(call, 20_000, () => false);
  await take('jobs', '/ui/jobs?queue=payments');
  await take('audit', '/ui/audit');
} finally {
  await browser.close();
  await servers.stop();
  receiver.close();
}
