#z = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [0], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
