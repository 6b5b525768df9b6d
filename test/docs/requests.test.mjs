// The requests that the documents show with curl are taken by the server, and its answers have the members that are shown.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev } from './dev.mjs';
import { documents } from './snippets.mjs';
import { codeOf } from './text.mjs';

/** Stands for the id in a variable of the shell; like the ids that pages show, it is of no job here. */
const SOME_ID = '01a1f87a-3ad0-7ec9-8394-ba0000000001';

/** Answers that end when the client leaves. */
const IS_STREAM = /\/events$|stream|\/ws$/;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-requests-'));
let server;

/** Each request of a page's blocks, with the answer that is shown below it. */
function requestsOf(path) {
  return codeOf(path)
    .blocks.filter(({ lang }) => lang === 'console')
    .flatMap(({ text }) => text.split(/^\$ /m).slice(1))
    .filter((part) => part.startsWith('curl'))
    .flatMap((part) => {
      const [command] = part.replace(/\\\n\s*/g, ' ').split(/\n(?=\{)/);
      const [, url] = /(?:http:\/\/localhost:8787|\$TOCSIN)(\/[^\s'"]*)/.exec(command) ?? [];
      if (!url || IS_STREAM.test(url)) return [];
      const [, saves] = / > (\S+)$/.exec(command.trim()) ?? [];
      const [, sends] = / --data-binary @(\S+)/.exec(command) ?? [];
      const [, body] = /\s-d '([^']*(?:'\$[A-Z]+'[^']*)*)'/.exec(command) ?? [];
      const [, type = 'application/json'] = /Content-Type: ([^']*)'/.exec(command) ?? [];
      const [, method = body ? 'POST' : 'GET'] = /-X ([A-Z]+)/.exec(command) ?? [];
      return [
        {
          ...{ method, url, type, saves, sends, body: body?.replace(/'\$[A-Z]+'/g, SOME_ID) },
          shown: part.split(/\n(?=\{)/)[1] ?? '',
        },
      ];
    });
}

/** The names of an object's own members in a text that may leave out parts of it. */
function membersIn(text) {
  let depth = 0;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"\s*:?|[{}[\]]/g) ?? [];
  return tokens.flatMap((token) => {
    if (!token.startsWith('"')) depth += '{['.includes(token) ? 1 : -1;
    return depth === 1 && token.endsWith(':') ? [JSON.parse(token.slice(0, -1))] : [];
  });
}

describe('the requests that the documents show', { timeout: 900_000 }, () => {
  before(async () => {
    server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('are taken, and answered with the members that are shown', async () => {
    let compared = 0;
    const wrong = [];
    const files = new Map();
    for (const path of documents()) {
      for (const { method, url, type, body: text, shown, saves, sends } of requestsOf(path)) {
        const body = sends ? files.get(sends) : text;
        if (sends && !body) continue;
        const init = { method, ...(body && { body, headers: { 'Content-Type': type } }) };
        const response = await fetch(server.url + url, init);
        if (saves && response.ok) {
          files.set(saves, await response.text());
          continue;
        }
        const answer = await response.json();
        // A job of the page is not there. Where an error is shown, there must be one.
        if (response.status === 404 && answer.error.code === 'not_found') continue;
        const members = membersIn(shown);
        const missing = members.filter((name) => !(name in answer));
        compared += members.length;
        if (missing.length > 0 || response.ok === members.includes('error')) {
          wrong.push(`${path}: ${method} ${url}: ${response.status}, without ${missing}`);
        }
      }
    }
    assert.deepEqual(wrong, []);
    assert.ok(compared > 50, `only ${compared} members were compared`);
  });
});
