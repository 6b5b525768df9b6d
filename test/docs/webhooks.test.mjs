// The receiver that the page about webhooks shows verifies what the queue signs, word for word.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { root } from './dev.mjs';
import { snippetsOf } from './snippets.mjs';

const SECRET = 'whsec_c2VjcmV0LW9mLXRoZS1kb2N1bWVudHM=';
const folder = mkdtempSync(join(tmpdir(), 'tocsin-receiver-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Bundles TypeScript and loads it. */
async function load(name, contents) {
  const outfile = join(folder, `${name}.mjs`);
  const stdin = { contents, loader: 'ts', resolveDir: root };
  await build({ stdin, bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'error' });
  return import(pathToFileURL(outfile).href);
}

it('the receiver takes what is signed, and nothing else', async (t) => {
  process.env.WEBHOOK_SECRET = SECRET;
  t.mock.method(console, 'log', () => undefined);
  const snippet = snippetsOf('docs/operate/webhooks.md').find(({ text }) => text.includes('standardwebhooks'));
  const { receive } = await load('receiver', snippet.text);
  const { signatureHeaders } = await load('signature', "export { signatureHeaders } from './src/dispatch/signature';");
  const url = 'https://ops.example/tocsin';
  const send = async (secrets, sent) => {
    const body = JSON.stringify({ id: 'evt_1', type: 'job.discarded', data: { job_id: '1' } });
    const headers = await signatureHeaders(['standard', 'ojs'], secrets, { url, id: 'whd_1', body, at: Date.now() });
    return (await receive(new Request(url, { method: 'POST', headers, body: sent ?? body }))).status;
  };
  assert.equal(await send([SECRET]), 204);
  assert.equal(await send(['another-secret-of-a-rotation', SECRET]), 204);
  assert.equal(await send(['another-secret-of-a-rotation']), 401);
  assert.equal(await send([SECRET], '{"id":"evt_2","type":"job.discarded","data":{}}'), 401);
});
