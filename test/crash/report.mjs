/** What the test says in the end. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from './check.mjs';

const listed = (figures) =>
  Object.entries(figures)
    .map(([key, n]) => `${key} ${n}`)
    .join(', ');

/** Prints the figures, and in case of a failure what shows it, and keeps the ledger. Answers whether all is well. */
export function report({ ledger, seed, rounds, directory, failure, round, requests }) {
  const { violations, counts } = check(JSON.parse(JSON.stringify(ledger)));
  for (const [name, figures] of Object.entries(counts)) {
    console.log(`  ${name}: ${typeof figures === 'number' ? figures : listed(figures)}`);
  }
  console.log(`  requests: ${requests}`);
  if (failure === undefined && violations.length === 0) return true;
  if (failure) console.error(`\nThe test broke off in round ${round}:`, failure);
  const rules = new Map(violations.map(({ rule }) => [rule, []]));
  for (const violation of violations) rules.get(violation.rule).push(violation);
  for (const [rule, list] of rules) console.error(`${list.length} × ${rule}`);
  for (const list of rules.values()) {
    for (const { rule, message, evidence } of list.slice(0, 3)) {
      console.error(`\n[${rule}] ${message}\n${JSON.stringify(evidence, null, 1)?.slice(0, 4_000) ?? ''}`);
    }
  }
  writeFileSync(join(directory, 'ledger.json'), JSON.stringify({ seed, rounds, ...ledger.toJSON() }));
  writeFileSync(join(directory, 'violations.json'), JSON.stringify(violations));
  console.error(`\nseed ${seed}, ${rounds} rounds. Storage, log and ledger are kept in ${directory}`);
  return false;
}
