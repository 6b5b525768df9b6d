/**
 * Which URLs jobs may be sent to: only addresses of the public Internet, since requests leave with this Worker's
 * network position:
 *
 * - `https:` on its own port, with no user name, password or fragment;
 * - a public host name: no numeric address, single word, reserved private name or final dot;
 * - with `loopback` (development): `http:` or `https:` to `localhost`, `127.0.0.1` or `[::1]` on any port.
 *
 * The *parsed* host is judged, because parsers read `2130706433`, `0x7f.1` and `①27.0.0.1` as 127.0.0.1. A public
 * name may still lead to a private address, which a Worker cannot check; on Cloudflare it reaches no private network.
 * Redirects are never followed.
 */

/** Longest URL, in characters. */
const MAX_LENGTH = 2048;

/** Names with these endings mean a machine or a private network (RFC 6761, 6762, 7686, 8375, ICANN's collisions). */
const PRIVATE_SUFFIXES = [
  'localhost',
  'local',
  'localdomain',
  'internal',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
  'arpa',
  'onion',
  'invalid',
];

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** One label of a host name as `URL` writes it: lower case, other scripts as `xn--…`. */
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;

export const TARGET_URL_RULE =
  'must be an https URL with a public host name and no port, user name, password or fragment, at most 2048 characters';

/** What a deployment allows beyond the public Internet. */
export interface Allows {
  /** This machine, for development. */
  loopback: boolean;
}

/** The URL, if jobs may be sent there. */
export function parseTargetUrl(text: string, allows: Allows): URL | undefined {
  if (text.length > MAX_LENGTH || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || text.includes('#')) return undefined;
  if (allows.loopback && isWeb(url.protocol) && LOOPBACK.has(url.hostname)) return url;
  return url.protocol === 'https:' && url.port === '' && isPublicName(url.hostname) ? url : undefined;
}

/** Is this the host of a URL on this machine? With a port or without. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host.replace(/:\d{1,5}$/, ''));
}

const isWeb = (protocol: string) => protocol === 'https:' || protocol === 'http:';

/** Is this the name of a host on the public Internet, by its form? */
export function isPublicName(host: string): boolean {
  const labels = host.split('.');
  const last = labels.at(-1) as string;
  // The last label of a numeric address begins with a digit; no top-level domain does.
  if (labels.length < 2 || host.length > 253 || /^\d/.test(last)) return false;
  return labels.every((label) => LABEL.test(label)) && !PRIVATE_SUFFIXES.includes(last);
}
