import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTargetUrl } from '../../src/dispatch/target-url';

const outside = (text: string) => parseTargetUrl(text, { loopback: false })?.href;
const here = (text: string) => parseTargetUrl(text, { loopback: true })?.href;

describe('a URL that jobs may be sent to', () => {
  it.each([
    ['https://app.example', 'https://app.example/'],
    ['HTTPS://App.Example:443/Hooks?a=1&b=2', 'https://app.example/Hooks?a=1&b=2'],
    ['https://a.b-c.d_e.example/', 'https://a.b-c.d_e.example/'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['https://localhost.example/', 'https://localhost.example/'],
    ['https://10.example/', 'https://10.example/'],
    ['https://x.workers.dev/\n', 'https://x.workers.dev/'],
  ])('may be %s', (text, href) => {
    expect(outside(text)).toBe(href);
  });

  it.each([
    '',
    'app.example',
    '//app.example/',
    'http://app.example/',
    'ftp://app.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:text/plain,x',
    'ws://app.example/',
    'https://',
    'https:///hooks',
    'https://app.example:8443/',
    'https://app.example:80/',
    'https://user@app.example/',
    'https://user:password@app.example/',
    'https://:password@app.example/',
    'https://app.example\\@127.0.0.1/#',
    'https://app.example/#part',
    'https://app.example/#',
    `https://app.example/${'a'.repeat(2048)}`,
  ])('is not %j', (text) => {
    expect([outside(text), here(text)]).toEqual([undefined, undefined]);
  });

  it.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '①27.0.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '0.0.0.0',
    '0',
    '8.8.8.8',
    '[::]',
    '[::1]',
    '[fc00::1]',
    '[fe80::1]',
    '[ff02::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::7f00:1]',
    '[2606:4700::1111]',
    'localhost',
    'LOCALHOST',
    'localhost.',
    'app.localhost',
    'router',
    'metadata.google.internal',
    'printer.local',
    'nas.lan',
    'db.corp',
    'x.home.arpa',
    '1.0.0.127.in-addr.arpa',
    'x.onion',
    'app.example.',
    'app..example',
    '.example',
    '-a.example',
    'a-.example',
    'app.example%00.evil.example',
    'app.example%2f.evil.example',
    `${'a'.repeat(64)}.example`,
    `${'a.'.repeat(130)}example`,
  ])('is not of the host %j', (host) => {
    expect([outside(`https://${host}/`), outside(`http://${host}/`)]).toEqual([undefined, undefined]);
  });

  it('may be of this machine in development, and of no other without a public name', () => {
    expect(here('http://localhost:8787/jobs')).toBe('http://localhost:8787/jobs');
    expect(here('http://127.1/')).toBe('http://127.0.0.1/');
    expect(here('https://[::1]:8443/')).toBe('https://[::1]:8443/');
    for (const url of ['http://localhost@10.0.0.1/', 'http://127.0.0.2/', 'http://10.0.0.1/', 'ftp://localhost/']) {
      expect(here(url)).toBeUndefined();
    }
  });

  it('never leads anywhere but to a public name over https, whatever is written', () => {
    const part = fc.constantFrom('a', '.', ':', '@', '/', '\\', '#', '?', '[', ']', '%', '0x7f', '127', '1', '::', ' ');
    const text = fc.array(part, { maxLength: 12 }).map((parts) => `https://${parts.join('')}`);
    fc.assert(
      fc.property(fc.oneof(text, fc.webUrl(), fc.string(), fc.ipV4Extended(), fc.ipV6()), (written) => {
        for (const candidate of [written, `https://${written}/`]) {
          const url = parseTargetUrl(candidate, { loopback: false });
          if (!url) continue;
          expect(url.href).toMatch(/^https:\/\/(?:[a-z0-9_-]+\.)+[a-z_-][a-z0-9_-]*(?:[/?].*)?$/);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
