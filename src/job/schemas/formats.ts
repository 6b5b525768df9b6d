/** The values of `format`, each decided in one pass over the text. Unknown formats accept everything. */

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const TIME = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i;
const DURATION = /^P(?:(\d+W)|(\d+Y)?(\d+M)?(\d+D)?(?:T(\d+H)?(\d+M)?(\d+S)?)?)$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const BYTE = /^(?:25[0-5]|2[0-4]\d|[01]?\d\d?)$/;
const STRICT_BYTE = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const HEX = /^[0-9a-f]{1,4}$/i;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;
const FRAGMENT_POINTER = /^#(?:\/(?:[a-z0-9_\-.!$&'()*+,;:=@]|%[0-9a-f]{2}|~[01])*)*$/i;
const RELATIVE = /^(?:0|[1-9]\d*)(#$)?/;
const ATOM = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+$/i;
const QUOTED = /^"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/;
const SCHEME = /^[a-z][a-z0-9+\-.]*$/i;
const USER = /^(?:[a-z0-9\-._~!$&'()*+,;=:]|%[0-9a-f]{2})*$/i;
const NAME = /^(?:[a-z0-9\-._~!$&'()*+,;=]|%[0-9a-f]{2})*$/i;
const FUTURE = /^v[0-9a-f]+\.[a-z0-9\-._~!$&'()*+,;=:]+$/i;
const PATH = /^(?:[a-z0-9\-._~!$&'()*+,;=:@/]|%[0-9a-f]{2})*$/i;
const QUERY = /^(?:[a-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9a-f]{2})*$/i;
const TEMPLATE_TEXT = /^(?:[!#$&-;=?-[\]_a-z~\u0080-\uffff]|%[0-9a-f]{2})*$/i;
const TEMPLATE_NAME = /^(?:[a-z0-9_]|%[0-9a-f]{2})+(?::[1-9]\d{0,3}|\*)?$/i;

const isIpv4 = (text: string, byte = BYTE) => {
  const parts = text.split('.', 5);
  return parts.length === 4 && parts.every((part) => byte.test(part));
};

function isIpv6(text: string): boolean {
  if (text.length > 45) return false;
  const last = text.slice(text.lastIndexOf(':') + 1);
  const isMixed = last.includes('.');
  if (isMixed && !isIpv4(last, STRICT_BYTE)) return false;
  const sides = (isMixed ? `${text.slice(0, text.length - last.length)}0:0` : text).split('::');
  const groups = sides.map((side) => (side === '' ? [] : side.split(':')));
  const count = groups.flat().length;
  return (
    groups.flat().every((group) => HEX.test(group)) &&
    (sides.length === 1 ? count === 8 : sides.length === 2 && count < 8)
  );
}

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (year === undefined) return false;
  const last = new Date(0);
  // The day before the first of the next month. `setUTCFullYear` takes years below 100 unchanged.
  last.setUTCFullYear(Number(year), Number(month), 0);
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= last.getUTCDate();
}

function isTime(text: string): boolean {
  const [, hour, minute, second, sign, offsetHour = '0', offsetMinute = '0'] = TIME.exec(text) ?? [];
  if (hour === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return false;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return false;
  if (Number(second) < 60) return true;
  // A leap second is the last one of a day of UTC.
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1);
  return (Number(hour) * 60 + Number(minute) - offset + 1440) % 1440 === 1439;
}

function isDateTime(text: string): boolean {
  const [date, time, more] = text.split(/[t\s]/i, 3);
  return date !== undefined && time !== undefined && more === undefined && isDate(date) && isTime(time);
}

function isDuration(text: string): boolean {
  const [, weeks, year, month, day, hour, minute, second] = DURATION.exec(text) ?? [];
  if (weeks !== undefined) return true;
  const isGap = (from?: string, between?: string, to?: string) => from && to && !between;
  if (isGap(year, month, day) || isGap(hour, minute, second) || text.endsWith('T')) return false;
  return [year, month, day, hour, minute, second].some((part) => part !== undefined);
}

function isHostname(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => LABEL.test(label));
}

function isEmail(text: string): boolean {
  const at = text.startsWith('"') ? text.indexOf('"@', 1) + 1 : text.indexOf('@');
  const [name, host] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  if (name.length > 64 || host.length > 253) return false;
  const isQuoted = QUOTED.test(name);
  if (!isQuoted && (!ATOM.test(name) || name.startsWith('.') || name.endsWith('.') || name.includes('..')))
    return false;
  if (!host.startsWith('[') || !host.endsWith(']')) return isHostname(host);
  const address = host.slice(1, -1);
  return /^ipv6:/i.test(address) ? isIpv6(address.slice(5)) : isIpv4(address);
}

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
  return isIpv6(host.slice(1, -1)) || FUTURE.test(host.slice(1, -1));
}

/** An address of the web: what `URL` can read, with the host written out. */
function isUrl(text: string): boolean {
  return /^(?:https?|ftp):\/\/[^\s/?#]/i.test(text) && !/\s/.test(text) && URL.canParse(text);
}

function isTemplate(text: string): boolean {
  for (let at = 0; ; ) {
    const open = text.indexOf('{', at);
    if (!TEMPLATE_TEXT.test(text.slice(at, open < 0 ? undefined : open))) return false;
    if (open < 0) return true;
    const close = text.indexOf('}', open);
    if (close < 0 || !isTemplatePart(text.slice(open + 1, close))) return false;
    at = close + 1;
  }
}

function isTemplatePart(text: string): boolean {
  const names = text.replace(/^[+#./;?&=,!@|]/, '').split(',');
  // The dots of a name separate parts, of which each must be one.
  return names.every((name) => {
    const parts = name.split('.');
    return parts.every((part, index) => TEMPLATE_NAME.test(part) && (index === parts.length - 1 || !/[:*]/.test(part)));
  });
}

function isRegex(text: string): boolean {
  if (/[^\\]\\Z/.test(text)) return false;
  try {
    new RegExp(text, 'u');
    return true;
  } catch {
    return false;
  }
}

function isRelativePointer(text: string): boolean {
  const [number, hash] = RELATIVE.exec(text) ?? [];
  return number !== undefined && (hash !== undefined || POINTER.test(text.slice(number.length)));
}

export const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['date', isDate],
  ['time', isTime],
  ['date-time', isDateTime],
  ['duration', isDuration],
  ['uri', (text) => isReference(text, true)],
  ['uri-reference', (text) => isReference(text, false)],
  ['uri-template', isTemplate],
  ['url', isUrl],
  ['email', isEmail],
  ['hostname', isHostname],
  ['ipv4', (text) => isIpv4(text)],
  ['ipv6', isIpv6],
  ['regex', isRegex],
  ['uuid', (text) => UUID.test(text)],
  ['json-pointer', (text) => POINTER.test(text)],
  ['json-pointer-uri-fragment', (text) => FRAGMENT_POINTER.test(text)],
  ['relative-json-pointer', isRelativePointer],
]);
