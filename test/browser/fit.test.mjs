// Every page with the demo's kind of data, on usual screens, a tablet and a phone: nothing is squeezed, nothing sticks out.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { seedDemo } from './support/demo.mjs';
import { dashboard } from './support/index.mjs';

const SIZES = [
  { width: 1440, height: 900 },
  { width: 1280, height: 800 },
  { width: 1024, height: 768 },
  { width: 768, height: 1024 },
  { width: 390, height: 844 },
];

/** The paths of all pages, as the dashboard's own table has them. */
const PATTERNS = [
  ...readFileSync(new URL('../../src/ui/pages/table.ts', import.meta.url), 'utf8').matchAll(
    /^ +(?:\{ )?path: '(.*?)'/gm,
  ),
].map(([, path]) => path);

describe('the pages', { timeout: 900_000 }, () => {
  const board = dashboard();
  let paths;
  before(async () => {
    const { job, held, group, schedule, workflow, subscription } = await seedDemo((...request) =>
      board.call(...request),
    );
    const queue = 'queues/documents';
    const tabs = (path, ...names) => names.map((name) => `${path}?tab=${name}`);
    paths = [
      ...['', 'queues', queue, ...tabs(queue, 'types', 'priorities', 'settings', 'cost', 'danger')],
      ...['queues/documents.limited', 'queues/documents.limited?tab=limits', 'queues/documents.grouped?tab=groups'],
      ...['jobs', 'jobs?dead=true', 'jobs?state=completed&tag=documents', `jobs/${job}`, `jobs/${held}`],
      ...['failures', `failures?group=${group}`, 'schedules', `schedules?open=${schedule}`],
      ...['workflows', `workflows/${workflow}`, `workflows/${workflow}?tab=steps`],
      ...['workers', 'limits', 'limits?override=renderer.example', 'events', 'audit'],
      ...['webhooks', `webhooks?open=${subscription}`, ...tabs('webhooks', 'deliveries'), 'alerts'],
      ...['settings', ...tabs('settings', 'deployment', 'keys', 'schemas', 'pools', 'retry', 'browser')],
    ];
  });

  it('are all looked at', () => {
    const visited = paths.map((path) => path.replace(/\?.*/, ''));
    const missed = PATTERNS.filter((pattern) => {
      const form = new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}$`);
      return !visited.some((path) => form.test(path));
    });
    assert.ok(PATTERNS.length >= 15, PATTERNS.join());
    assert.deepEqual(missed, []);
  });

  it('break no word of a cell, and neither they nor their tables have to be scrolled sideways', async () => {
    const page = await board.newPage('/ui', { width: 1440 });
    const found = [];
    for (const path of paths) {
      await page.goto(`/ui/${path}`.replace(/\/$/, ''), { waitUntil: 'commit' });
      await page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('main .skeleton'));
      for (const size of SIZES) {
        await page.setViewportSize(size);
        for (const misfit of await page.evaluate(misfits))
          found.push(`${path || 'overview'} at ${size.width}: ${misfit}`);
      }
    }
    assert.deepEqual(found, []);
  });

  it('show the tab that is open, also where not all of them have room', async () => {
    const page = await board.newPage('/ui/queues/documents?tab=danger', { width: 390 });
    const tabs = page.getByRole('navigation', { name: 'Parts of this page' });
    const place = await tabs.getByRole('link', { name: 'Danger zone' }).boundingBox();
    assert.ok(place.x >= 0 && place.x + place.width <= 390, `It is from ${place.x} to ${place.x + place.width} px.`);
    // Its counts come after it is drawn.
    const jobs = await board.newPage('/ui/jobs?state=discarded', { width: 390 });
    const state = jobs.getByRole('navigation').getByRole('link', { name: /^Discarded \d+/ });
    const { x, width } = await state.boundingBox();
    assert.ok(x >= 0 && x + width <= 390, `It is from ${x} to ${x + width} px.`);
  });
});

/** Runs in the page. Says what does not fit there. */
function misfits() {
  /** Longer words may go on in the next line. */
  const WHOLE = 24;
  const found = [];
  const wider = (what, { scrollWidth, clientWidth }) => {
    if (scrollWidth > clientWidth) found.push(`${what} needs ${scrollWidth} px and has ${clientWidth}`);
  };
  wider('the page', document.documentElement);
  for (const frame of document.querySelectorAll('.table-frame')) {
    wider(`the table of ${frame.firstElementChild.getAttribute('aria-label')}`, frame);
  }
  for (const filters of innerWidth >= 1280 ? document.querySelectorAll('.filters') : []) {
    const rows = new Set([...filters.children].map((field) => field.getBoundingClientRect().top));
    if (rows.size > 1) found.push(`the filters are in ${rows.size} rows`);
  }
  const range = document.createRange();
  for (const cell of document.querySelectorAll(':is(td, th):not(.hidden)')) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (text.parentElement.closest('.hidden, option, textarea')) continue;
      for (const { 0: word, index } of text.data.matchAll(/[^\s-]+/g)) {
        if (word.length > WHOLE) continue;
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => top));
        if (lines.size > 1) found.push(`"${word}" is on ${lines.size} lines`);
      }
    }
  }
  return [...new Set(found)];
}
