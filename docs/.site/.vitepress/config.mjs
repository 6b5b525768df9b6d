/** The site: the sections of docs/README.md at the side, a search that runs in the browser, links as the project has them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { apiPages, slugOf } from '../api.mjs';
import { addressOf, linksIn, pageOf, resolveLink, root } from '../links.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const titleOf = (text) => /^# (.*)$/m.exec(text)[1].replaceAll('`', '');

/** A section of docs/README.md: its heading and the documents that it links, in their order. */
const sections = read('docs/README.md')
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const paths = linksIn(section).map((href) => resolveLink('docs/README.md', href)?.path);
    const items = paths.filter((path) => path?.endsWith('.md')).map((path) => ({ path, text: titleOf(read(path)) }));
    return {
      text: section.split('\n', 1)[0],
      collapsed: false,
      items: items.map(({ path, text }) => ({ text, link: pageOf(path).address })),
    };
  });

const api = apiPages(JSON.parse(read('docs/reference/openapi.json')));
const resources = api.map(({ path, text }) => ({ text: titleOf(text), link: `/${path.replace(/(index)?\.md$/, '')}` }));

/** Braces are text, and no expressions of the page. */
function withPlainBraces(md) {
  for (const name of ['text', 'code_inline']) {
    const render = md.renderer.rules[name];
    md.renderer.rules[name] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;');
  }
}

/** Addresses of the site in place of the project's paths. */
function withAddresses(md) {
  md.core.ruler.push('addresses', ({ tokens, env }) => {
    const from = env.frontmatter?.source;
    if (from === undefined) return;
    const address = (token, name) => token.attrSet(name, addressOf(from, token.attrGet(name)));
    const visit = (token) => {
      if (token.type === 'link_open') address(token, 'href');
      if (token.type === 'image') address(token, 'src');
      if (token.type.startsWith('html_')) {
        token.content = token.content.replace(
          /\b(src|srcset)="([^"]*)"/g,
          (_, name, path) => `${name}="${addressOf(from, path)}"`,
        );
      }
      token.children?.forEach(visit);
    };
    tokens.forEach(visit);
  });
}

export default defineConfig({
  title: 'Tocsin',
  description: 'A durable job queue on Cloudflare Workers and Durable Objects',
  lang: 'en',
  srcDir: 'dist/pages',
  outDir: 'dist/site',
  cacheDir: 'node_modules/.vitepress',
  cleanUrls: true,
  markdown: {
    anchor: { slugify: slugOf },
    // Braces are text, as on GitHub: they name a part of a path.
    attrs: { disable: true },
    config: (md) => {
      withAddresses(md);
      withPlainBraces(md);
    },
  },
  // A queue on the reader's own machine.
  ignoreDeadLinks: [/^http:\/\/localhost\b/],
  vite: { logLevel: 'warn', build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    search: { provider: 'local', options: { detailedView: true } },
    nav: sections.map(({ text, items }) => ({ text, link: items[0].link })),
    sidebar: [
      ...sections,
      { text: 'The API', collapsed: true, items: resources },
      {
        text: 'The project',
        items: ['README.md', 'CHANGELOG.md', '.github/CONTRIBUTING.md', '.github/SECURITY.md', 'LICENSE'].map(
          (path) => ({
            text: path.endsWith('.md') ? titleOf(read(path)) : 'Licence',
            link: pageOf(path).address,
          }),
        ),
      },
    ],
    outline: [2, 3],
  },
});
