/** The values of `format`. Each takes a time that grows with the text alone. Unknown formats accept everything. */
import { format as library } from '@cfworker/json-schema';

/** The parts of a reference, as in RFC 3986, appendix B, and those of its authority. */
const PARTS = /^(?:([^:/?#]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;
const AUTHORITY = /^(?:([^@]*)@)?(?:\[([^\]@]*)\]|([^:[@]*))(?::\d*)?$/;

const SCHEME = /^[a-z][a-z0-9+\-.]*$/i;
const USER = /^(?:[a-z0-9\-._~!$&'()*+,;=:]|%[0-9a-f]{2})*$/i;
const NAME = /^(?:[a-z0-9\-._~!$&'()*+,;=]|%[0-9a-f]{2})*$/i;
const FUTURE = /^v[0-9a-f]+\.[a-z0-9\-._~!$&'()*+,;=:]+$/i;
const PATH = /^(?:[a-z0-9\-._~!$&'()*+,;=:@/]|%[0-9a-f]{2})*$/i;
const QUERY = /^(?:[a-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9a-f]{2})*$/i;

function isReference(text: string, isAbsolute: boolean): boolean {
  const [, scheme, authority = '', path = '', query = '', fragment = ''] = PARTS.exec(text) ?? [];
  if (scheme === undefined ? isAbsolute : !SCHEME.test(scheme)) return false;
  return isAuthority(authority) && PATH.test(path) && QUERY.test(query) && QUERY.test(fragment);
}

function isAuthority(text: string): boolean {
  const [matched, user = '', address, name = ''] = AUTHORITY.exec(text) ?? [];
  if (matched === undefined || !USER.test(user) || !NAME.test(name)) return false;
  return address === undefined || library.ipv6?.(address) === true || FUTURE.test(address);
}

/** An address of the web: what `URL` can read, with the host written out. */
const isUrl = (text: string): boolean =>
  /^(?:https?|ftp):\/\/[^\s/?#]/i.test(text) && !/\s/.test(text) && URL.canParse(text);

export const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ...Object.entries(library),
  // The library takes some against RFC 3986, and needs exponential time for a `url`.
  ['uri', (text) => isReference(text, true)],
  ['uri-reference', (text) => isReference(text, false)],
  ['url', isUrl],
]);
