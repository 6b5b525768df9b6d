/** The site: the sections of docs/README.md at the side, a search that runs in the browser, links as the project has them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { slugOf } from '../api.mjs';
import { contents } from '../contents.mjs';
import { addressOf, root } from '../links.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');

const { documents, api, project } = contents(JSON.parse(read('docs/reference/openapi.json')));
const sectionOf = ({ text, items }, collapsed) => ({
  text,
  ...(collapsed !== undefined && { collapsed }),
  items: items.map(({ title, address }) => ({ text: title, link: address })),
});
const sections = documents.map((section) => sectionOf(section, false));

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
  // The pages as Markdown are files of the site, and no pages.
  srcExclude: ['public/**/*.md'],
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
  transformHead: ({ page }) =>
    page === '404.md' ? [] : [['link', { rel: 'alternate', type: 'text/markdown', href: `/${page}` }]],
  // A queue on the reader's own machine.
  ignoreDeadLinks: [/^http:\/\/localhost\b/],
  vite: { logLevel: 'warn', build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    search: { provider: 'local', options: { detailedView: true } },
    nav: sections.map(({ text, items }) => ({ text, link: items[0].link })),
    sidebar: [...sections, sectionOf(api, true), sectionOf(project)],
    outline: [2, 3],
  },
});
