// The optimizers' rules, one element at a time. N: a number, or a vector of them (cpu/loops/lanes-inl.h); T:
// the type of a number. update() changes an element v and its slots, in the order in which the rule names
// them; g is the gradient.
//
// No guard and no namespace: update_rules.h includes the formulas for numbers, cpu/loops/update_rules.cc for
// vectors, once for each instruction set. A compiler gives a function the instructions of the place where its
// text stands, so that a template that is included once would have those of the oldest processor.

/// v −= g · rate
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const GradientDescentRule<T>& rule, N& v, N*, N g) {
  v -= g * rule.rate;
}

/// a = a · momentum + g; v −= a · rate
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const MomentumRule<T>& rule, N& v, N* slot, N g) {
  slot[0] = slot[0] * rule.momentum + g;
  v -= slot[0] * rule.rate;
}

/// a = a · momentum + g; v −= g · rate + a · momentum · rate
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const NesterovRule<T>& rule, N& v, N* slot, N g) {
  slot[0] = slot[0] * rule.momentum + g;
  v -= g * rule.rate + slot[0] * rule.momentum * rule.rate;
}

/// a += g²; v −= g · rate / √a
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const AdagradRule<T>& rule, N& v, N* slot, N g) {
  slot[0] += g * g;
  v -= g * rule.rate / square_root(slot[0]);
}

/// ms += (g² − ms) · one_minus_decay; mom = mom · momentum + g · rate / √(ms + epsilon); v −= mom
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const RmsPropRule<T>& rule, N& v, N* slot, N g) {
  slot[0] += (g * g - slot[0]) * rule.one_minus_decay;
  slot[1] = slot[1] * rule.momentum + g * rule.rate / square_root(slot[0] + rule.epsilon);
  v -= slot[1];
}

/// With slots ms, mg, mom: mg += (g − mg) · one_minus_decay as well, and √(ms − mg² + epsilon).
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const CenteredRmsPropRule<T>& rule, N& v, N* slot, N g) {
  slot[0] += (g * g - slot[0]) * rule.one_minus_decay;
  slot[1] += (g - slot[1]) * rule.one_minus_decay;
  const N variance = slot[0] - slot[1] * slot[1] + rule.epsilon;
  slot[2] = slot[2] * rule.momentum + g * rule.rate / square_root(variance);
  v -= slot[2];
}

/// m += (g − m) · one_minus_beta1; w += (g² − w) · one_minus_beta2;
/// v −= m · rate / (√w + epsilon), and, decay not being 0, v · decay before that.
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const AdamRule<T>& rule, N& v, N* slot, N g) {
  slot[0] += (g - slot[0]) * rule.one_minus_beta1;
  slot[1] += (g * g - slot[1]) * rule.one_minus_beta2;
  if (rule.decay != 0) v -= v * rule.decay;
  v -= slot[0] * rule.rate / (square_root(slot[1]) + rule.epsilon);
}

/// a = a · rho + g² · one_minus_rho; u = √(d + epsilon) / √(a + epsilon) · g; v −= u · rate;
/// d = d · rho + u² · one_minus_rho
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const AdadeltaRule<T>& rule, N& v, N* slot, N g) {
  slot[0] = slot[0] * rule.rho + g * g * rule.one_minus_rho;
  const N u = square_root(slot[1] + rule.epsilon) / square_root(slot[0] + rule.epsilon) * g;
  slot[1] = slot[1] * rule.rho + u * u * rule.one_minus_rho;
  v -= u * rule.rate;
}

/// n = a + g²; z += g + v · two_shrinkage − (nᵖ − aᵖ) / rate · v; a = n;
/// v = (sign(z) · l1 − z) / (nᵖ / rate + two_l2) where |z| > l1, else 0.  p = power, 0.5 for a root
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const FtrlRule<T>& rule, N& v, N* slot, N g) {
  const N n = slot[0] + g * g;
  const bool is_root = rule.power == T(0.5);
  const N new_power = is_root ? square_root(n) : power(n, rule.power);
  const N old_power = is_root ? square_root(slot[0]) : power(slot[0], rule.power);
  const N z = slot[1] + (g + v * rule.two_shrinkage - (new_power - old_power) / rule.rate * v);
  const N root = (copy_sign(N(rule.l1), z) - z) / (new_power / rule.rate + rule.two_l2);
  slot[0] = n;
  slot[1] = z;
  v = where_greater(absolute(z), N(rule.l1), root, N(T(0)));
}

/// c = m · beta1 + g · one_minus_beta1; v −= (sign(c) + v · decay) · rate; m = m · beta2 + g ·
/// one_minus_beta2
template <typename T, typename N>
KOLO_HOST_DEVICE inline void update(const LionRule<T>& rule, N& v, N* slot, N g) {
  const N c = slot[0] * rule.beta1 + g * rule.one_minus_beta1;
  const N zero(T(0)), minus_or_c = where_greater(zero, c, N(T(-1)), c);  // NaN stays NaN
  const N sign = where_greater(c, zero, N(T(1)), minus_or_c);
  slot[0] = slot[0] * rule.beta2 + g * rule.one_minus_beta2;
  v -= (sign + v * rule.decay) * rule.rate;
}
