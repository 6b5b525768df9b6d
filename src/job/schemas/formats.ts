/** The values of `format`. Each takes a time that grows with the text alone. Unknown formats accept everything. */
import { format as library } from '@cfworker/json-schema';

const SCHEME = /^[a-z][a-z0-9+\-.]*$/i;
const USER = /^(?:[a-z0-9\-._~!$&'()*+,;=:]|%[0-9a-f]{2})*$/i;
const NAME = /^(?:[a-z0-9\-._~!$&'()*+,;=]|%[0-9a-f]{2})*$/i;
const FUTURE = /^v[0-9a-f]+\.[a-z0-9\-._~!$&'()*+,;=:]+$/i;
const PATH = /^(?:[a-z0-9\-._~!$&'()*+,;=:@/]|%[0-9a-f]{2})*$/i;
const QUERY = /^(?:[a-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9a-f]{2})*$/i;

/** The text before the first `mark`, and what is behind it. */
function parted(text: string, mark: string): [before: string, after: string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function isReference(text: string, isAbsolute: boolean): boolean {
  const [main, fragment = ''] = parted(text, '#');
  const [hierarchy, query = ''] = parted(main, '?');
  if (!QUERY.test(fragment) || !QUERY.test(query)) return false;
  const colon = hierarchy.indexOf(':');
  const hasScheme = colon > 0 && SCHEME.test(hierarchy.slice(0, colon));
  // Without a scheme, the first part of a path has no colon.
  const isPathFirst = colon < 0 || (hierarchy.indexOf('/') >= 0 && hierarchy.indexOf('/') < colon);
  if (!hasScheme && (isAbsolute || !isPathFirst)) return false;
  const rest = hasScheme ? hierarchy.slice(colon + 1) : hierarchy;
  if (!rest.startsWith('//')) return PATH.test(rest);
  const slash = rest.indexOf('/', 2);
  const [authority, path] = slash < 0 ? [rest.slice(2), ''] : [rest.slice(2, slash), rest.slice(slash)];
  return PATH.test(path) && isAuthority(authority);
}

function isAuthority(text: string): boolean {
  const at = text.lastIndexOf('@');
  if (at >= 0 && !USER.test(text.slice(0, at))) return false;
  const server = text.slice(at + 1);
  const end = server.startsWith('[') ? server.indexOf(']') + 1 : parted(server, ':')[0].length;
  const [host, port] = [server.slice(0, end), server.slice(end)];
  if (port !== '' && !/^:\d*$/.test(port)) return false;
  if (!host.startsWith('[')) return !server.startsWith('[') && NAME.test(host);
  const address = host.slice(1, -1);
  return library.ipv6?.(address) === true || FUTURE.test(address);
}

/** An address of the web: what `URL` can read, with the host written out. */
function isUrl(text: string): boolean {
  return /^(?:https?|ftp):\/\/[^\s/?#]/i.test(text) && !/\s/.test(text) && URL.canParse(text);
}

export const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ...Object.entries(library),
  // The library takes some against RFC 3986, and needs exponential time for a `url`.
  ['uri', (text) => isReference(text, true)],
  ['uri-reference', (text) => isReference(text, false)],
  ['url', isUrl],
]);
