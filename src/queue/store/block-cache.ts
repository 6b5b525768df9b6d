/** Blocks in memory: those that were read last, bounded in bytes. */
import type { Block } from './block';

const MAX_BLOCKS = 64;
const MAX_BYTES = 6 * 1024 * 1024;

export class BlockCache {
  /** By their first numbers; the block that was read last is last. */
  private readonly blocks = new Map<number, Block>();
  private last: Block | undefined;

  get(first: number): Block | undefined {
    return this.blocks.get(first);
  }

  /** The block that spans this number, if it is in memory. */
  spanning(key: number): Block | undefined {
    if (this.last?.spans(key)) return this.last;
    for (const block of this.blocks.values()) {
      if (!block.spans(key)) continue;
      this.last = block;
      return block;
    }
    return undefined;
  }

  /** Keeps a block, and drops those that were read longest ago. */
  keep(block: Block): Block {
    this.blocks.delete(block.first);
    this.blocks.set(block.first, block);
    this.last = block;
    let left = this.bytes;
    for (const oldest of this.blocks.values()) {
      if (oldest === block || (this.blocks.size <= MAX_BLOCKS && left <= MAX_BYTES)) break;
      left -= oldest.bytes;
      this.blocks.delete(oldest.first);
    }
    return block;
  }

  /** Bytes of all of them, about. */
  get bytes(): number {
    let bytes = 0;
    for (const block of this.blocks.values()) bytes += block.bytes;
    return bytes;
  }

  delete({ first }: Block): void {
    this.blocks.delete(first);
    this.last = undefined;
  }

  clear(): void {
    this.blocks.clear();
    this.last = undefined;
  }
}

/** One range of numbers that no block spans, as far as is known. */
export class Gap {
  private from = 0;
  private to = -1;

  has(key: number): boolean {
    return key >= this.from && key <= this.to;
  }

  /** None spans a number from the first to the second. */
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
