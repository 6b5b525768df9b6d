/**
 * Telling workflows of the ends of their jobs, from the outbox. A report that was not confirmed is made again; a workflow that
 * cannot be reached is left alone for a while and holds up no other.
 */
import type { Feature, Host } from '../../feature';

/** Workflows told at once. */
const WIDTH = 10;

/** A run that was begun and not finished is looked at again after so long, ms. */
const STANDBY_MS = 1_000;

/** Pauses before a workflow that could not be reached is told again, ms: doubled each time. */
const RETRY_MS = { first: 1_000, longest: 60_000 };

export class WorkflowNotifier implements Feature {
  private running: Promise<void> | undefined;
  private again = false;
  /** Workflows that could not be reached: when to try again, and how often it was tried. */
  private readonly failing = new Map<string, { at: number; tries: number }>();

  constructor(private readonly host: Host) {}

  /** Tells what there is to tell. Never throws. */
  start(): void {
    if (this.host.q.workflows.isEmpty) return;
    this.again = true;
    if (this.running) return;
    this.running = this.run();
    this.host.keepAlive(this.running);
  }

  /** When to start again if nothing else happens before; undefined when everything is told. */
  due(now: number): number | undefined {
    if (this.host.q.workflows.isEmpty) return undefined;
    if (this.running) return now + STANDBY_MS;
    return this.failing.size > 0 ? Math.min(...Array.from(this.failing.values(), ({ at }) => at)) : now;
  }

  private async run(): Promise<void> {
    const { workflows } = this.host.q;
    try {
      while (this.again) {
        this.again = false;
        let last = '';
        for (;;) {
          const some = workflows.workflowsAfter(last, WIDTH);
          if (some.length === 0) break;
          last = some.at(-1) as string;
          await Promise.all(some.map((workflow) => this.tell(workflow)));
        }
      }
    } catch (error) {
      console.error('tocsin: workflows could not be told', error);
      this.host.wakeAt(this.host.now() + RETRY_MS.first);
    } finally {
      this.running = undefined;
    }
  }

  private async tell(workflow: string): Promise<void> {
    const { q, now } = this.host;
    const failed = this.failing.get(workflow);
    if (failed && now() < failed.at) return;
    try {
      for (;;) {
        const report = q.workflows.reportFor(workflow);
        if (!report) break;
        const receipt = await this.host.others.workflow(workflow).stepsEnded(q.name, report.endings);
        await this.host.write((at) => {
          q.workflows.confirm(workflow, report, receipt.unrecorded);
          for (const { type, data } of receipt.events) q.events.add(type, workflow, at, data);
        });
      }
      this.failing.delete(workflow);
    } catch (error) {
      console.error('tocsin: a workflow could not be told', error);
      const tries = (failed?.tries ?? 0) + 1;
      const at = now() + Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** (tries - 1));
      this.failing.set(workflow, { at, tries });
      this.host.wakeAt(at);
    }
  }
}
