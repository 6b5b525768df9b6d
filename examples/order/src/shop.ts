/** The bank, the warehouse and the mail, simulated in memory. Every call is idempotent: the second one under a key changes nothing. */

export interface Ledger {
  /** Cents taken from customers, by key. */
  charges: Map<string, number>;
  /** Places in the warehouse that are reserved, by key. */
  places: Map<string, { item: string; place: number }>;
  /** URLs where a person approves an order, by its number. */
  mails: Map<string, string>;
}

export const ledger: Ledger = { charges: new Map(), places: new Map(), mails: new Map() };

/** Sends the URL to whoever approves orders. */
export function mail(number: string, url: string): void {
  ledger.mails.set(number, url);
}

/** Takes money. @throws {Error} when the card is declined */
export function charge(key: string, cents: number): { receipt: string } {
  if (cents > 100_000) throw new Error('the card is declined');
  ledger.charges.set(key, cents);
  return { receipt: `receipt for ${key}` };
}

export function refund(key: string): void {
  ledger.charges.delete(key);
}

/** Reserves an item. @throws {Error} when there is none */
export function reserve(key: string, item: string): { place: number } {
  if (item === 'sold out') throw new Error(`${item} is not in stock`);
  const known = ledger.places.get(key);
  const place = known?.place ?? ledger.places.size + 1;
  ledger.places.set(key, { item, place });
  return { place };
}

export function release(key: string): void {
  ledger.places.delete(key);
}
