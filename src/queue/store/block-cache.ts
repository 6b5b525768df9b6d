/** Blocks read last. Positions have a bound of their own: groups in turns revisit blocks for few bodies. */
import { firstIndex } from '../../job/bisect';
import type { Block } from './block';

/** Bytes at most: of what is known of the jobs, and of their bodies. */
const MAX_HEADS = 8 * 1024 * 1024;
const MAX_BODIES = 6 * 1024 * 1024;

/** {@link MAX_HEADS} for blocks written and not read since, which may be read much later. */
const MAX_WRITTEN = 2 * 1024 * 1024;

/** Blocks in the order in which they were used, with a size of each. The one that was used last is last. */
class Used {
  bytes = 0;
  private readonly sizes = new Map<Block, number>();

  constructor(private readonly most: number) {}

  /** The block is used. @param bytes its size by now */
  use(block: Block, bytes: number): void {
    this.delete(block);
    this.sizes.set(block, bytes);
    this.bytes += bytes;
  }

  delete(block: Block): void {
    const known = this.sizes.get(block);
    if (known === undefined) return;
    this.bytes -= known;
    this.sizes.delete(block);
  }

  /** The block that must go first, while there are too many bytes. @param except it stays */
  surplus(except: Block): Block | undefined {
    if (this.bytes <= this.most) return undefined;
    for (const block of this.sizes.keys()) if (block !== except) return block;
    return undefined;
  }

  clear(): void {
    this.sizes.clear();
    this.bytes = 0;
  }
}

export class BlockCache {
  private readonly blocks = new Map<number, Block>();
  private firsts: number[] = [];
  private readonly heads = new Used(MAX_HEADS);
  private readonly bodies = new Used(MAX_BODIES);
  private readonly written = new Used(MAX_WRITTEN);
  private last: Block | undefined;
  /** Blocks read from storage since this object started. */
  read = 0;

  get(first: number): Block | undefined {
    return this.blocks.get(first);
  }

  spanning(key: number): Block | undefined {
    if (this.last?.spans(key)) return this.last;
    const block = this.blocks.get(this.firsts[this.placeOf(key + 1) - 1] ?? -1);
    if (!block?.spans(key)) return undefined;
    this.last = block;
    return block;
  }

  /** Keeps a block, dropping the least recently used. @param isAhead read ahead: others do not go for it */
  keep(block: Block, isAhead = false): Block {
    if (isAhead && this.heads.bytes + block.headBytes > MAX_HEADS) {
      this.last = block;
      return block;
    }
    const { first } = block;
    const known = this.blocks.get(first);
    if (known !== block) {
      if (known) this.delete(known);
      this.firsts.splice(this.placeOf(first), 0, first);
      this.blocks.set(first, block);
    }
    this.heads.use(block, block.headBytes);
    if (block.data !== undefined) this.bodies.use(block, block.dataBytes);
    for (let old = this.bodies.surplus(block); old; old = this.bodies.surplus(block)) {
      old.data = undefined;
      this.bodies.delete(old);
    }
    for (let old = this.heads.surplus(block); old; old = this.heads.surplus(block)) this.delete(old);
    this.last = block;
    return block;
  }

  /** Keeps a block that was just written. */
  add(block: Block): void {
    this.keep(block);
    this.written.use(block, block.headBytes + block.dataBytes);
    for (let old = this.written.surplus(block); old; old = this.written.surplus(block)) this.delete(old);
  }

  get bytes(): number {
    return this.heads.bytes + this.bodies.bytes;
  }

  delete({ first }: Block): void {
    const block = this.blocks.get(first);
    this.last = undefined;
    if (!block) return;
    this.blocks.delete(first);
    this.firsts.splice(this.placeOf(first), 1);
    for (const used of [this.heads, this.bodies, this.written]) used.delete(block);
  }

  clear(): void {
    this.blocks.clear();
    this.firsts = [];
    for (const used of [this.heads, this.bodies, this.written]) used.clear();
    this.last = undefined;
  }

  private placeOf(first: number): number {
    return firstIndex(this.firsts.length, (at) => (this.firsts[at] as number) >= first);
  }
}

/** One range of numbers that no block spans, as far as is known. */
export class Gap {
  private from = 0;
  private to = -1;

  has(key: number): boolean {
    return key >= this.from && key <= this.to;
  }

  set(from: number, to: number): void {
    this.from = from;
    this.to = to;
  }

  /** From this number on there may be one now. */
  end(at: number): void {
    this.to = Math.min(this.to, at - 1);
  }

  clear(): void {
    this.set(0, -1);
  }
}
