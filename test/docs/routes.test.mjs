// Every path that the documents name is one of the server's, and docs/reference/http.md lists every route.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { root } from './dev.mjs';
import { load, read } from './source.mjs';
import { commandsIn, everywhere } from './text.mjs';

const PAGE = 'docs/reference/http.md';
/** The block below the heading, which this test writes anew: UPDATE=1 node --test test/docs/routes.test.mjs */
const BLOCK = /(## All routes\n[\s\S]*?```text\n)([\s\S]*?)(```)/;

const { ROUTES } = await load('http/routes.ts');

/** Paths stand on a page as they are, or below one of these. */
const PREFIXES = ['', '/ojs/v1', '/ojs/v1/admin'];

/** Not of the queue: what a handler Worker announces, and what a Worker of Cloudflare's own is asked. */
const OTHERS = [/^\/\.well-known\/tocsin$/];

const METHOD = 'GET|POST|PUT|PATCH|DELETE';

/** Is this, as a document writes it, a path of the route? `:id`, `<id>`, `$ID` and values stand for a parameter. */
function fits(written, route) {
  // `/webhooks/*` and `/admin/schemas…` stand for what is below.
  const [mine, its] = [written.replace(/\/?[*…]$/, '/…').split('/'), route.split('/')];
  if (its.at(-1) === '*') return mine.slice(0, its.length - 1).join('/') === its.slice(0, -1).join('/');
  const isOpen = mine.at(-1) === '…';
  if (isOpen ? mine.length > its.length : mine.length !== its.length) return false;
  return mine.every((part, at) => part === its[at] || part === '…' || (its[at].startsWith(':') && part !== ''));
}

const isServed = ({ method, path }) =>
  OTHERS.some((other) => other.test(path)) ||
  PREFIXES.some((prefix) =>
    ROUTES.some((route) => (!method || route.method === method) && fits(prefix + path, route.path)),
  );

/** `GET /jobs/:id`; `…/cancel` and a path that begins in another way are left out. */
function callsIn({ spans }) {
  return spans.flatMap((span) => {
    const [, method, path] = new RegExp(`^(${METHOD}) (/[^\\s?{]*)`).exec(span) ?? [];
    if (path) return [{ method, path }];
    return /^\/ojs\/v1\/(?!admin$)[^\s?{]+$/.test(span) ? [{ path: span }] : [];
  });
}

/** What `curl` calls, apart from the paths of the reader's own Worker. */
function requestsIn(code) {
  return commandsIn(code).flatMap((command) => {
    if (!/\bcurl\b/.test(command)) return [];
    const [, path] = /(?:localhost:\d+|\.workers\.dev|\$TOCSIN)(\/[^\s'"?]*)/.exec(command) ?? [];
    if (!path || !/^\/(ojs|health|metrics)\b/.test(path)) return [];
    const [, said] = /-X ([A-Z]+)/.exec(command) ?? [];
    return [{ method: said ?? (/\s-d /.test(command) ? 'POST' : 'GET'), path }];
  });
}

it('the documents name only paths that the server has', () => {
  const named = everywhere((code) => [...callsIn(code), ...requestsIn(code)]);
  assert.ok(named.length > 200, `only ${named.length} were found`);
  assert.deepEqual(
    named.filter(({ text }) => !isServed(text)).map(({ path, text }) => `${path}: ${text.method ?? ''} ${text.path}`),
    [],
  );
});

it('the page about HTTP lists every route: its scope, and what it does', () => {
  const { paths } = JSON.parse(read('docs/reference/openapi.json'));
  const methods = new Map();
  for (const route of ROUTES) methods.set(route.path, [...(methods.get(route.path) ?? []), route]);
  const order = METHOD.split('|');
  const lines = [...methods.keys()].sort().flatMap((path) => {
    const sorted = methods.get(path).sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method));
    const written = path.replace(/:(\w+)/g, '{$1}').replace('*', '{path}');
    return [
      `${path}\n`,
      ...sorted.map(({ method, scope }) => {
        const { summary = '' } = paths[written]?.[method.toLowerCase()] ?? {};
        return `${`  ${method.padEnd(6)} ${scope.padEnd(12)} ${summary}`.trimEnd()}\n`;
      }),
    ];
  });
  const page = read(PAGE);
  const found = BLOCK.exec(page);
  assert.ok(found, `${PAGE} has no "## All routes" with a block`);
  if (process.env.UPDATE) {
    writeFileSync(
      join(root, PAGE),
      page.replace(BLOCK, (_, before, __, after) => before + lines.join('') + after),
    );
  } else assert.equal(found[2], lines.join(''));
});

it('the JSON that the documents show can be read, in blocks and in requests', () => {
  const blocks = everywhere((code) => code.blocks.filter(({ lang }) => lang === 'json').map(({ text }) => text));
  const bodies = everywhere((code) =>
    commandsIn(code).flatMap((command) => {
      const [, body] = /\bcurl\b.*\s-d '([^']*(?:'\$[A-Z]+'[^']*)*)'/.exec(command) ?? [];
      // A shell variable stands for an id.
      return body === undefined ? [] : [body.replace(/'\$[A-Z]+'/g, 'id')];
    }),
  );
  assert.ok(blocks.length > 8 && bodies.length > 30, `only ${blocks.length} and ${bodies.length} were found`);
  const isWrong = ({ text }) => {
    try {
      JSON.parse(text.replaceAll('{…}', '{}'));
      return false;
    } catch {
      return true;
    }
  };
  assert.deepEqual([...blocks, ...bodies].filter(isWrong), []);
});
