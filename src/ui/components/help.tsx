import { useState } from 'preact/hooks';
import { groups } from '../core/keyboard';
import { Dialog } from './overlays';

export default function Help({ onClose }: { onClose: () => void }) {
  // Those of the page beneath; the dialog has none of its own.
  const [shown] = useState(groups.value);
  return (
    <Dialog title="Keys" onClose={onClose} wide>
      <div class="help">
        {shown.map(({ title, keys }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {Object.entries(keys).map(([key, { label }]) => (
                <div key={key}>
                  <dt>
                    {key.split(' ').map((part) => (
                      <kbd key={part}>{part}</kbd>
                    ))}
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
