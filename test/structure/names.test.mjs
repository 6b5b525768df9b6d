// What a test is called reads as a sentence: what is described is its subject, and its words are those of the field.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from '@babel/parser';
import { root } from '../docs/dev.mjs';
import { quaintIn } from '../docs/plain-words.mjs';

/** A name that begins so has its subject in the `describe` around it. */
const HEADLESS = /^(?:is|are|has|does|says|gives|keeps|takes|may|of|that|and|not|but|with|whose|because) /;

/** Continues the name of another test. */
const DANGLING = /^(?:not|nor|so) |^and (?!then|of|hooks)/;

/** `it.each(rows)` and `describe.skip` are called by their first name. */
function calledAs(callee) {
  if (callee.type === 'MemberExpression') return calledAs(callee.object);
  if (callee.type === 'CallExpression') return calledAs(callee.callee);
  return callee.name;
}

/** The tests of a file: their names, and whether something is described around them. */
function testsOf(path) {
  const found = [];
  const visit = (node, isInside) => {
    if (Array.isArray(node)) for (const child of node) visit(child, isInside);
    if (typeof node?.type !== 'string') return;
    const called = node.type === 'CallExpression' ? calledAs(node.callee) : undefined;
    const [title] = node.arguments ?? [];
    if (called === 'it' || called === 'test') {
      const texts = title?.type === 'TemplateLiteral' ? title.quasis.map(({ value }) => value.cooked) : [title?.value];
      if (typeof texts[0] === 'string') found.push({ name: texts.join('…'), isInside });
    }
    for (const child of Object.values(node)) visit(child, isInside || called === 'describe');
  };
  const text = readFileSync(join(root, path), 'utf8');
  visit(parse(text, { sourceType: 'module', plugins: ['typescript', 'decorators'] }).program, false);
  return found;
}

describe('the names of tests', () => {
  const tests = globSync('test/**/*.test.{ts,mjs}', { cwd: root }).flatMap((path) =>
    testsOf(path).map((test) => ({ path, ...test })),
  );
  const named = (wrong) => tests.filter(wrong).map(({ path, name }) => `${path}: ${name}`);

  it('have a subject', () => {
    assert.deepEqual(
      named(({ name, isInside }) => DANGLING.test(name) || (!isInside && HEADLESS.test(name))),
      [],
    );
  });

  it('have plain words', () => {
    const found = tests.flatMap(({ path, name }) => quaintIn(name).map((quaint) => `${path}: ${quaint}`));
    assert.deepEqual(found, []);
  });
});
