// The site of the documents, built as `npm run docs` does it: it has every page, finds each of them, and no link on it is broken.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { lexer, walkTokens } from 'marked';
import { root, wrangler } from './dev.mjs';

const SITE = join(root, 'docs/.site/dist/site');

const read = (path) => readFileSync(join(root, path), 'utf8');
const documents = globSync('docs/**/*.md', { cwd: root });
const addressOf = (path) =>
  path
    .replace(/^docs\//, '/')
    .replace(/\.md$/, '')
    .replace(/\/README$/, '/');

/** The Markdown of the page at an address, as a file of the site. */
const markdownFile = (address) => `${address.replace(/\/$/, '/index').slice(1)}.md`;

/** What a page that is served at an address is stored as. */
const fileOf = (address) => join(SITE, address.endsWith('/') ? `${address}index.html` : `${address}.html`);

const text = (html) =>
  html
    .replace(/<a class="header-anchor".*?<\/a>/g, '')
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll('\u200b', '')
    .trim();

const without = (names, name) => names.filter((one) => one !== name);

describe('the site of the documents', { timeout: 580_000 }, () => {
  /** The pages as they are stored, by their addresses. @type {Map<string, { html: string, ids: Set<string> }>} */
  const pages = new Map();

  before(() => {
    execFileSync('npm', ['run', 'docs'], { cwd: root, stdio: 'pipe' });
    for (const file of globSync('**/*.html', { cwd: SITE })) {
      const html = readFileSync(join(SITE, file), 'utf8');
      const ids = new Set(Array.from(html.matchAll(/\sid="([^"]*)"/g), ([, id]) => id));
      pages.set(`/${file.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')}`, { html, ids });
    }
  });

  it('has a page for every document, with its title', () => {
    assert.ok(documents.length > 40);
    for (const path of documents) {
      const [, title] = /^# (.*)$/m.exec(read(path));
      const [, heading] = /<h1[^>]*>(.*?)<\/h1>/s.exec(pages.get(addressOf(path))?.html ?? '') ?? [];
      assert.equal(text(heading ?? ''), title.replaceAll('`', ''), path);
    }
  });

  it('has every operation of the API, under a heading of its own', () => {
    const { paths } = JSON.parse(read('docs/reference/openapi.json'));
    const api = [...pages].filter(([address]) => address.startsWith('/reference/api/')).map(([, { html }]) => html);
    const headings = new Set(
      api.flatMap((html) => Array.from(html.matchAll(/<h2[^>]*>(.*?)<\/h2>/gs), ([, inner]) => text(inner))),
    );
    const operations = Object.entries(paths).flatMap(([path, item]) =>
      without(Object.keys(item), 'parameters').map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.ok(operations.length > 200);
    assert.deepEqual(
      operations.filter((operation) => !headings.has(operation)),
      [],
    );
  });

  it('finds every document in its search, without a server', async () => {
    const [chunk] = globSync('assets/chunks/@localSearchIndexroot.*.js', { cwd: SITE });
    const { default: index } = await import(pathToFileURL(join(SITE, chunk)).href);
    const found = new Set(Object.values(JSON.parse(index).documentIds).map((id) => id.split('#')[0]));
    assert.deepEqual(
      documents.map(addressOf).filter((address) => !found.has(address)),
      [],
    );
    // What is there because a document points at it would be in the way.
    assert.deepEqual(
      [...found].filter((address) => address.startsWith('/project/test/')),
      [],
    );
  });

  it('has no link that leads nowhere', () => {
    const broken = [];
    let followed = 0;
    for (const [address, { html }] of pages) {
      for (const [, written] of html.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
        if (/^[a-z][a-z0-9+.-]*:/i.test(written)) continue;
        followed++;
        const [path, anchor] = written.replaceAll('&amp;', '&').split('#');
        const target =
          path === '' ? address : posix.resolve(posix.dirname(`${address}x`), path) + (/.\/$/.test(path) ? '/' : '');
        const page = pages.get(target);
        if (page ? anchor && !page.ids.has(decodeURIComponent(anchor)) : !existsSync(join(SITE, target))) {
          broken.push(`${address}: ${written}`);
        }
      }
    }
    assert.ok(followed > 10_000, `only ${followed} were followed`);
    assert.deepEqual(broken, []);
  });

  it('has every picture and script that its pages name, and asks no other server for one', () => {
    const missing = [];
    let pictures = 0;
    for (const [address, { html }] of pages) {
      for (const [, name, path] of html.matchAll(/<(?:img|source|script|link)\b[^>]*?\s(src|srcset|href)="([^"]*)"/g)) {
        if (path.startsWith('data:')) continue;
        if (path.endsWith('.png')) pictures++;
        if (!path.startsWith('/') || !existsSync(join(SITE, path))) missing.push(`${address}: ${name} ${path}`);
      }
    }
    assert.ok(pictures > 5);
    assert.deepEqual(missing, []);
  });

  /** Every page but the one for what is not there. */
  const found = () => without([...pages.keys()], '/404');
  /** Files of the project that documents link are pages, too, and in no list. */
  const listed = () => found().filter((address) => !address.startsWith('/project/'));
  const served = (path) => readFileSync(join(SITE, path), 'utf8');

  it('has each page as Markdown, with its title, and the page links it', () => {
    for (const address of found()) {
      const { html } = pages.get(address);
      const file = markdownFile(address);
      assert.ok(html.includes(`<link rel="alternate" type="text/markdown" href="/${file}">`), address);
      const [, heading] = /<h1[^>]*>(.*?)<\/h1>/s.exec(html);
      assert.equal(/^# (.*)$/m.exec(served(file))?.[1].replaceAll('`', ''), text(heading), file);
    }
    assert.equal(globSync('**/*.md', { cwd: SITE }).length, found().length);
  });

  it('has only links in Markdown that lead to Markdown or to other files, from wherever it is read', () => {
    const broken = [];
    let followed = 0;
    for (const file of globSync('**/*.md', { cwd: SITE })) {
      const targets = [];
      const text = served(file);
      walkTokens(lexer(text), ({ type, href, raw }) => {
        if (type === 'link' || type === 'image') targets.push(href);
        if (type === 'html') targets.push(...Array.from(raw.matchAll(/\bsrc(?:set)?="([^"]*)"/g), ([, path]) => path));
      });
      for (const target of targets.filter((href) => !/^[a-z][a-z0-9+.-]*:/i.test(href))) {
        followed++;
        const [path, anchor] = target.split('#');
        const page = pages.get(path.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, ''));
        const isThere = path.startsWith('/') && existsSync(join(SITE, path)) && /\.\w+$/.test(path);
        if (!isThere || (page && anchor && !page.ids.has(decodeURIComponent(anchor))))
          broken.push(`${file}: ${target}`);
      }
    }
    assert.ok(followed > 3_000, `only ${followed} were followed`);
    assert.deepEqual(broken, []);
  });

  it('names in llms.txt each page once, and only pages that are there, each with what it is about', () => {
    const list = served('llms.txt');
    assert.match(list, /^# Tocsin\n\n> [^\n]+\n/);
    const sections = list.split(/^## /m).slice(1);
    assert.deepEqual(
      sections.map((section) => section.split('\n')[0]),
      ['Start', 'Guides', 'Operate', 'Reference', 'The API', 'Optional'],
    );
    const lines = sections.flatMap((section) => section.split('\n').slice(1)).filter((line) => line !== '');
    assert.deepEqual(
      lines.map((line) => /^- \[[^\]]+\]\(\/([^)]+)\): \S.*\.$/.exec(line)?.[1] ?? line).sort(),
      listed().map(markdownFile).sort(),
    );
  });

  it('has all of these pages in llms-full.txt, in the same order', () => {
    const files = Array.from(served('llms.txt').matchAll(/^- \[[^\]]+\]\(\/([^)]+)\)/gm), ([, file]) => file);
    const full = served('llms-full.txt');
    let at = 0;
    for (const file of files) {
      const next = full.indexOf(`\nSource: /${file}\n\n${served(file).trim()}\n`, at);
      assert.ok(next > 0, `${file} is not there after what llms.txt has before it`);
      at = next;
    }
    assert.equal(full.match(/^Source: \/\S+\.md$/gm).length, files.length);
  });

  it('is deployed as static files of a Worker', async () => {
    const { code, output } = await wrangler('deploy', '--dry-run', '-c', 'docs/.site/wrangler.toml');
    assert.equal(code, 0, output);
    assert.match(output, /Read \d+ files from the assets directory/);
    assert.ok(existsSync(fileOf('/404')));
  });
});
