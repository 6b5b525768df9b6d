import { describe, expect, it } from 'vitest';
import { MAX_HTML_CHARS, render } from '../../examples/documents/src/render';

const htmlOf = (markdown: string): string => render({ path: 'a.md', markdown }).html;

describe('a rendered document', () => {
  it('has the HTML, its size in bytes and its headings', () => {
    const html = '<h1 id="ünder">Ünder</h1>\n<p>A <strong>word</strong>.</p>\n';
    expect(render({ path: 'a.md', markdown: '# Ünder\n\nA **word**.' })).toEqual({
      html,
      html_bytes: html.length + 2,
      headings: [{ level: 1, text: 'Ünder', id: 'ünder' }],
      truncated: false,
    });
  });

  it('names each heading as its list of headings does', () => {
    const { html, headings } = render({ path: 'a.md', markdown: '# A\n\n> # A\n\n- # A\n\n# B & C' });
    expect(Array.from(html.matchAll(/id="([^"]*)"/g), ([, id]) => id)).toEqual(headings.map(({ id }) => id));
    expect(headings).toHaveLength(4);
  });

  it('resolves references that are defined further down', () => {
    expect(htmlOf('[here][x]\n\n[x]: there.md')).toContain('<a href="there.md">here</a>');
  });

  it('is cut between two blocks when it is long, and still says how long it was', () => {
    const paragraph = 'word '.repeat(200).trim();
    const { html, html_bytes, truncated } = render({ path: 'a.md', markdown: `${paragraph}\n\n`.repeat(100) });
    expect(truncated).toBe(true);
    expect(html.length).toBeLessThanOrEqual(MAX_HTML_CHARS);
    expect(html.endsWith('</p>\n')).toBe(true);
    expect(html_bytes).toBe(100 * `<p>${paragraph}</p>\n`.length);
  });

  it('of nothing is nothing', () => {
    expect(render({ path: 'a.md', markdown: '' })).toEqual({ html: '', html_bytes: 0, headings: [], truncated: false });
  });
});

describe('what a document cannot do', () => {
  it.each(['<script>alert(1)</script>', 'a <img src=x onerror=alert(1)> b', '<div onclick="alert(1)">x</div>'])(
    'is raw HTML: %s is shown as text',
    (markdown) => {
      expect(htmlOf(markdown)).not.toMatch(/<(?!\/?p>)/);
    },
  );

  it.each([
    '[x](javascript:alert(1))',
    '[x](JavaScript:alert(1))',
    '[x](java&#115;cript:alert(1))',
    '[x](javascript&colon;alert(1))',
    '[x](data:text/html,x)',
    '![x](vbscript:x)',
  ])('is a link that runs a script: %s keeps its text only', (markdown) => {
    expect(htmlOf(markdown)).toBe('<p>x</p>\n');
  });

  it.each(['https://example.com/?a=1&b=2', 'mailto:a@example.com', '../a.md#b', '#b', 'a/b:c.md', '/'])(
    'does not keep %s from being a link',
    (href) => {
      expect(htmlOf(`[x](${href})`)).toContain('<a href=');
    },
  );
});
