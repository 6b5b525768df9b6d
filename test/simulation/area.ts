/**
 * An area of the simulation: what one part of the product brings into the histories, in a file of its own. `areas.ts` lists
 * them and `steps.ts` unites their steps; everything else finds them there.
 */
import type fc from 'fast-check';
import type { Depth } from './compare';
import type { Scene } from './scene';
import type { History } from './steps';
import type { World, WorldHooks } from './world';

export interface Weighted<T> {
  weight: number;
  arbitrary: fc.Arbitrary<T>;
}

/** What a step does, once all is read that it sends. */
export interface Turn {
  /** In this a statement may be made to fail: then the model is as before, and so must the product be. */
  play(): void | Promise<void>;
  /** What must be heard when it is over, whether it failed or not. */
  after?(): Promise<void>;
}

/** How one kind of step is played. */
export interface Kind<S> {
  prepare(scene: Scene, step: S): Turn | Promise<Turn>;
  /** The product has not run in it, or the step has finished its transactions by itself. */
  silent?: true;
  /** It takes several turns of the object: it cannot be lost as a whole. */
  isLonger?: true;
  /** The same step with less in it, for the shrinker. */
  plainer?(step: S): S[];
}

/** A step that is read at once needs but a function. */
export type Player<S> = Kind<S> | ((scene: Scene, step: S) => void | Promise<void>);

/** What concerns all of a history, not one of its steps. Everything is optional. */
export interface Extras<S> {
  /** Steps that any history may have, beside those of the other areas. */
  steps?: readonly Weighted<S>[];
  /** Histories of the area's own kind. @param length how many steps one has */
  histories?(length: number): Weighted<History>[];
  /** Who stands around the object, and what it may be configured with. Asked whenever an object is constructed. */
  hooks?(world: World, history: Terms): Partial<WorldHooks>;
  /** Before the first step. */
  begin?(scene: Scene, history: Terms): void | Promise<void>;
  /** The product may have done something by itself: before each operation, and when a transaction is over. */
  observe?(scene: Scene): void;
  /** After a step, before what it left is compared: what goes on by itself has its turn. */
  settle?(scene: Scene): Promise<void>;
  /** A statement may fail also in what goes on by itself. */
  isFaulted?: true;
  /** Before a step in which a statement fails. */
  beforeFault?(scene: Scene): Promise<void>;
  /** The object has died; the model may have to forget, too. */
  evicted?(scene: Scene): void;
  /** After a step: what the area promises. */
  compare?(scene: Scene, depth: Depth): void;
  /** Before all is drained: what stands in the way of an empty queue goes away. */
  clear?(scene: Scene): void | Promise<void>;
  /** What the product may complain of although no statement was made to fail. */
  excuses?: readonly RegExp[];
  /** The history is over, however it went. */
  end?(): void;
}

/** What is known of a history before its first step. */
export type Terms = Omit<History, 'steps'>;

export interface Area<S extends { op: string }> extends Extras<S> {
  kinds: { [Op in S['op']]: Player<Extract<S, { op: Op }>> };
}
