/**
 * Brings what the code declares into effect, by name. What differs from its last application, or is gone, was changed
 * by an operator, and is kept. Things that the code never declared are not touched.
 */
import { ApiError } from '../job/errors';
import { own } from '../job/own';

/** Each as it was applied, by name; null: there was another one of that name. */
export type Applied = Record<string, string | null>;

export interface DeclaredKind<Entry, Existing> {
  /** What the code declares, by name. */
  entries: Readonly<Record<string, Entry>>;
  before: Readonly<Applied>;
  /** Names of those to be reset to what the code says. */
  again: ReadonlySet<string>;
  find(name: string): Existing | undefined | Promise<Existing | undefined>;
  /** In the form for comparison: without what an operator may change at any time. */
  textOf(existing: Existing): string;
  /** Was it made by another author, if it was never applied? Absent: it cannot be. */
  isForeign?(existing: Existing, entry: Entry): boolean;
  /** @param mustReset even if nothing seems to differ @returns the text of what is in effect */
  put(name: string, entry: Entry, existing: Existing | undefined, mustReset: boolean): Promise<string>;
  remove(existing: Existing): Promise<unknown>;
  /** Called with a refusal, which then stops nothing else. Absent: it is thrown. */
  refused?(name: string, message: string): void;
}

export class Reconciliation<Entry, Existing> {
  /** What is in effect now. */
  readonly applied: Applied = {};

  constructor(private readonly kind: DeclaredKind<Entry, Existing>) {}

  /** Applies what is declared. */
  async put(): Promise<void> {
    const { kind, applied } = this;
    for (const [name, entry] of Object.entries(kind.entries)) {
      await this.trying(name, async () => {
        const before = own(kind.before, name);
        if (before !== undefined) applied[name] = before;
        const existing = await kind.find(name);
        const isKept =
          typeof before === 'string'
            ? before !== (existing && kind.textOf(existing))
            : existing !== undefined && kind.isForeign?.(existing, entry);
        const mustReset = kind.again.has(name);
        applied[name] = isKept && !mustReset ? (before ?? null) : await kind.put(name, entry, existing, mustReset);
      });
    }
  }

  /** Removes what is no longer declared. */
  async withdraw(): Promise<void> {
    const { kind, applied } = this;
    for (const [name, before] of Object.entries(kind.before)) {
      if (Object.hasOwn(kind.entries, name)) continue;
      await this.trying(name, async () => {
        const existing = await kind.find(name);
        if (!existing || before !== kind.textOf(existing)) return;
        // A refused removal is tried again.
        applied[name] = before;
        await kind.remove(existing);
        delete applied[name];
      });
    }
  }

  private async trying(name: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ApiError) || !this.kind.refused) throw error;
      this.kind.refused(name, error.data.message);
    }
  }
}
