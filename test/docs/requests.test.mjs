// The requests that the documents show with curl are run as they are shown, by curl, and the server's answers have the
// members that are shown below them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev } from './dev.mjs';
import { documents } from './snippets.mjs';
import { codeOf, commandsOf } from './text.mjs';

/** Stands for an id; like the ids that pages show, it is of no job here. */
const SOME_ID = '01a1f87a-3ad0-7ec9-8394-ba0000000001';

/** The variables of the shell that pages set beforehand, apart from the address of the queue. */
const VARIABLES = { KEY: 'none', TOCSIN_KEY: 'none', ID: SOME_ID, FIRST: SOME_ID, SECOND: SOME_ID };

/** Where readers have their queue, apart from what a variable names. */
const ADDRESS = /http:\/\/localhost:8787|https:\/\/[\w.-]*<your-subdomain>\.workers\.dev/g;

/** What a deployment answers that has no key; a server on localhost is open. */
const IS_CLOSED = /"unauthorized"/;

/** Prints the status behind the answer. Streams of jobs that are not there end with it. */
const CURLRC = 'silent\nshow-error\nmax-time = 60\nwrite-out = "%{stderr}\\nstatus %{http_code}"\n';

const folder = mkdtempSync(join(tmpdir(), 'tocsin-requests-'));
let server;

/** Each request of a page's blocks, as a command on one line, with the answer that is shown for it. */
function requestsOf(path) {
  return codeOf(path).blocks.flatMap((block) => {
    const commands = commandsOf(block);
    const answers = block.lang === 'console' ? block.text.split(/^\$ /m).slice(1) : [];
    return commands.flatMap((command, at) => {
      if (!/^curl\b/.test(command)) return [];
      const isLast = !commands.slice(at + 1).some((other) => /^curl\b/.test(other));
      const below = block.lang === 'console' ? answers[at].split(/\n(?=\{)/)[1] : isLast && block.answer;
      return [{ command, shown: below || '' }];
    });
  });
}

/** Runs a command in a shell; what curl prints, and the status that it got. */
function run(command) {
  const text = command.replace(ADDRESS, server.url).replace(/<id>/g, SOME_ID);
  const env = { ...process.env, ...VARIABLES, TOCSIN: server.url, TOCSIN_URL: server.url, CURL_HOME: folder };
  return new Promise((resolve) => {
    // An unknown variable ends the shell.
    execFile('sh', ['-uc', text], { cwd: folder, env }, (error, printed, problem) => {
      const [, status] = /status (\d+)$/.exec(problem) ?? [];
      const answer = printed.replace(/^HTTP\/[\s\S]*?\r\n\r\n/, '');
      resolve({ status: Number(status), answer, problem: error ? problem : '' });
    });
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

/** What is wrong with the answer to a request; undefined: nothing. */
function problemOf({ status, answer, problem }, shown) {
  if (problem) return problem;
  const isEmpty = answer.trim() === '';
  const parsed = isEmpty ? {} : JSON.parse(answer);
  // A job of the page is not there. Where an error is shown, there must be one.
  if (status === 404 && parsed.error.code === 'not_found') return undefined;
  const members = membersIn(shown);
  const missing = members.filter((name) => !(name in parsed));
  if (missing.length > 0) return `${status}, without ${missing}`;
  return status < 400 === members.includes('error') ? `${status}: ${answer}` : undefined;
}

describe('the requests that the documents show', { timeout: 900_000 }, () => {
  before(async () => {
    writeFileSync(join(folder, '.curlrc'), CURLRC);
    server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('are all found', () => {
    for (const path of documents()) {
      const shown = codeOf(path).blocks.flatMap(({ text }) => text.match(/^(?:\$ )?curl\b/gm) ?? []);
      assert.equal(requestsOf(path).length, shown.length, `${path}: a block of curl is neither sh nor console`);
    }
  });

  it('are taken, and answered with the members that are shown', async () => {
    let compared = 0;
    const wrong = [];
    for (const path of documents()) {
      for (const { command, shown } of requestsOf(path)) {
        if (IS_CLOSED.test(shown)) continue;
        const problem = problemOf(await run(command), shown);
        compared += membersIn(shown).length;
        if (problem) wrong.push(`${path}: ${command}: ${problem}`);
      }
    }
    assert.deepEqual(wrong, []);
    assert.ok(compared > 50, `only ${compared} members were compared`);
  });
});
