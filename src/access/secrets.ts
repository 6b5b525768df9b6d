/** Members that hold secrets, marked next to their types in contracts; audit log, answers and events derive from it. */
import { isObject } from '../job/envelope/fields';
import { REDACTED } from './redaction';

/** How a secret is shown. `whole`: not. `url`: the origin. `inside`: words, and of objects the names of members. */
export type Mask = 'whole' | 'url' | 'inside';

export type SecretMembers<T> = { readonly [Name in keyof T]?: Mask };

/** A copy without the values of secret members; `null` and absent ones stay. */
export function withoutSecrets<T extends object>(value: T, members: SecretMembers<T>): T {
  const masks = members as Record<string, Mask | undefined>;
  const shown = Object.entries(value).map(([name, item]) => {
    const mask = Object.hasOwn(masks, name) ? masks[name] : undefined;
    return [name, mask === undefined || item === undefined || item === null ? item : masked(item, mask)];
  });
  return Object.fromEntries(shown) as T;
}

function masked(value: unknown, mask: Mask): unknown {
  if (mask === 'url' && typeof value === 'string') return maskedUrl(value);
  if (mask === 'inside' && typeof value === 'string') return value;
  if (mask === 'inside' && isObject(value)) {
    return Object.fromEntries(Object.keys(value).map((name) => [name, REDACTED]));
  }
  return REDACTED;
}

/** The origin of a URL, and a mark for what follows it. A text that is not a URL is not shown. */
export function maskedUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || url.origin === 'null') return REDACTED;
  const isBare = url.href === `${url.origin}/`;
  return isBare ? url.href : `${url.origin}/${REDACTED}`;
}

/** A message without the secrets of the URLs in it. */
export const withMaskedUrls = (text: string) => text.replace(/https?:\/\/[^\s"'<>]+/gi, maskedUrl);

/** Does a value stand for a secret that was not shown? */
export const isMasked = (value: unknown) => JSON.stringify(value)?.includes(REDACTED) === true;
